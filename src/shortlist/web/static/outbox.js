// Answers on their way to the service. They survive a reload and a lost network: what is in here is not lost, and
// because an answer names its question, sending it twice counts once.

export class Outbox {
  constructor(key, storage = localStorage) {
    this.key = key
    this.storage = storage
    this.entries = JSON.parse(storage.getItem(key) ?? '[]')
  }

  get first() { return this.entries[0] }
  get size() { return this.entries.length }
  has(id) { return this.entries.some((entry) => entry.question.id === id) }

  add(question, body) {
    this.entries.push({ question, body })
    this.#save()
  }

  // The first one was answered by the service.
  shift() {
    this.entries.shift()
    this.#save()
  }

  // Take the newest back before it is sent; undefined if it is on its way.
  takeBack(sending) {
    if (this.size <= (sending ? 1 : 0)) return undefined
    const entry = this.entries.pop()
    this.#save()
    return entry.question
  }

  #save() { this.storage.setItem(this.key, JSON.stringify(this.entries)) }
}
