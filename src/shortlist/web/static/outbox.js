// Answers on their way to the service. They survive a reload and a lost network: what is in here is not lost, and
// because an answer names its question, sending it twice counts once. Every answer has an entry of its own in the storage,
// so that several windows of one judge do not overwrite each other's.

export class Outbox {
  constructor(key, storage = localStorage) {
    this.key = `${key} `
    this.storage = storage
  }

  // Oldest first, those of other windows too.
  get entries() {
    const found = []
    for (let place = 0; place < this.storage.length; place++) {
      const name = this.storage.key(place)
      if (name.startsWith(this.key)) found.push(JSON.parse(this.storage.getItem(name)))
    }
    return found.sort((one, other) => one.at - other.at)
  }

  get first() { return this.entries[0] }
  get size() { return this.entries.length }
  has(id) { return this.storage.getItem(this.key + id) !== null }

  // False if the question was answered in another window, whose answer stays.
  add(question, body) {
    if (this.has(question.id)) return false
    this.storage.setItem(this.key + question.id, JSON.stringify({ question, body, at: Date.now() + performance.now() / 1e6 }))
    return true
  }

  // The service has answered, or wants none of it.
  remove(id) { this.storage.removeItem(this.key + id) }

  // Take the newest back before it is sent; undefined if it is on its way.
  takeBack(sending) {
    const entries = this.entries
    if (entries.length <= (sending ? 1 : 0)) return undefined
    const { question } = entries.at(-1)
    this.remove(question.id)
    return question
  }
}
