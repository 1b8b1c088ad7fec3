// Items as people write them. Pure: text in, items out.

const PICTURE = /^https?:\/\/\S+$/

// One per line: name, name | text, name | address of a picture
export function fromLines(text, format = 'text') {
  return lines(text).map((line) => {
    const [name, ...rest] = line.split('|')
    return item(name.trim(), rest.join('|').trim(), format)
  })
}

// Between --- lines: the first line is the name, the rest its text.
export function fromBlocks(text, format = 'text') {
  return text.split(/^\s*---+\s*$/m).map((block) => block.trim()).filter(Boolean).map((block) => {
    const [name, ...rest] = block.split('\n')
    return item(name.replace(/^#+\s*/, '').trim(), rest.join('\n').trim(), format)
  })
}

// A list of names or of objects as the API takes them.
export function fromJson(text) {
  const list = JSON.parse(text)
  if (!Array.isArray(list)) throw new Error('the file must contain a list of items')
  return list.map((entry) => (typeof entry === 'string' ? { name: entry } : entry))
}

export const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean)

function item(name, rest, format) {
  if (PICTURE.test(rest)) return { name, image: rest }
  return rest ? { name, text: rest, format } : { name }
}
