// Items as people write them. Pure: text in, items out.

const ADDRESS = /^https?:\/\/\S+$/
const KINDS = [['audio', /\.(mp3|m4a|wav|ogg|oga|flac)$/i], ['video', /\.(mp4|m4v|webm|ogv)$/i]]

// One per line: name, name | text, name | address of a picture, sound or film; and # track above the items of a track
export function fromLines(text, format = 'text') {
  let track
  return lines(text).flatMap((line) => {
    if (line.startsWith('# ')) {
      track = line.slice(2).trim()
      return []
    }
    const [name, ...rest] = line.split('|')
    return [{ ...item(name.trim(), rest.join('|').trim(), format), ...(track ? { track } : {}) }]
  })
}

// Between --- lines: the first line is the name, the rest its text.
export function fromBlocks(text, format = 'text') {
  return text.split(/^\s*---+\s*$/m).map((block) => block.trim()).filter(Boolean).map((block) => {
    const [name, ...rest] = block.split('\n')
    return item(name.replace(/^#+\s*/, '').trim(), rest.join('\n').trim(), format)
  })
}

export const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean)

function item(name, rest, format) {
  if (ADDRESS.test(rest)) {
    const path = rest.replace(/[?#].*$/, '')
    const kind = KINDS.find(([, ending]) => ending.test(path))?.[0] ?? 'image'
    return { name, [kind]: rest }
  }
  return rest ? { name, text: rest, format } : { name }
}

// The tracks of items, in their order.
export const tracks = (items) => [...new Set(items.map((item) => item.track).filter(Boolean))]

// Which names are there twice: every item needs a name of its own, in its track.
export function repeated(items) {
  const names = items.map((item) => item.name.trim() + (item.track ? ` (${item.track})` : ''))
  return [...new Set(names.filter((name, place) => names.indexOf(name) !== place))]
}
