// Items as rows that can be edited, moved and removed. `items` is the owner's list and is changed in place.
import { call, make } from './api.js'

export const MEDIA = '.png,.jpg,.jpeg,.gif,.webp,.heic,.heif,.mp3,.m4a,.wav,.ogg,.flac,.mp4,.webm'

// `fixed`: names, texts and nothing else can be changed; then `aside` is what stands beside an item.
export function editor(list, items, changed, fixed = () => false, aside = () => null) {
  const redraw = (focus) => {
    list.replaceChildren(...items.map((item, place) => row(items, item, place, changed, redraw, fixed() ? aside(place) : undefined)))
    changed()
    if (focus) list.children[Math.min(focus.place, items.length - 1)]?.querySelector(focus.what)?.focus()
  }
  redraw()
  return redraw
}

function row(items, item, place, changed, redraw, aside) {
  const what = item.name || `item ${place + 1}`
  const field = (tag, part, label, attributes = {}) => {
    const input = make(tag, { 'aria-label': `${label} of item ${place + 1}`, dir: 'auto', placeholder: label, ...attributes })
    input.value = item[part] ?? ''
    input.addEventListener('input', () => {
      item[part] = input.value
      changed()
    })
    return input
  }
  const button = (text, label, css, task, off) => make('button', { type: 'button', class: `plain ${css}`, 'aria-label': `${label}: ${what}`, disabled: off, onclick: task }, text)
  const swap = (other, css) => () => {
    [items[place], items[other]] = [items[other], items[place]]
    redraw({ place: other, what: `.${css}:not(:disabled), .remove` })
  }
  return make('li', { class: 'item-row' }, preview(item),
    make('div', { class: 'fields' }, field('input', 'name', 'Name', { maxlength: 200 }),
      field('textarea', 'text', 'Text', { rows: item.text?.includes('\n') ? 4 : 1 }), item.track ? make('span', { class: 'help' }, `Track: ${item.track}`) : null),
    aside !== undefined ? aside : make('div', { class: 'moves' },
      button('↑', 'Move up', 'up', swap(place - 1, 'up'), place === 0),
      button('↓', 'Move down', 'down', swap(place + 1, 'down'), place === items.length - 1),
      button('Remove', 'Remove', 'remove', () => {
        items.splice(place, 1)
        redraw({ place, what: '.remove' })
      })))
}

function preview(item) {
  if (item.image) {
    const small = item.image.startsWith('/uploads/') ? `${item.image}?size=small` : null
    return small ? make('img', { src: small, alt: '', class: 'thumb' }) : make('span', { class: 'thumb' }, 'link')
  }
  return make('span', { class: 'thumb', 'aria-hidden': 'true' }, item.audio ? '♪' : item.video ? '▶' : '')
}

// Uploads files one by one, and says how far it is. A file that is refused does not stop the others.
export async function addFiles(files, items, say) {
  const refused = []
  let number = 0
  for (const file of files) {
    number += 1
    say(`Uploading ${number} of ${files.length} …`)
    const body = new FormData()
    body.append('file', file)
    try {
      const { kind, address } = await call('POST', '/api/uploads', body)
      items.push({ name: file.name.replace(/\.\w+$/, ''), [kind]: address })
    } catch (error) {
      refused.push(`${file.name}: ${error.message}`)
    }
  }
  say('')
  if (refused.length) throw new Error(refused.join('. '))
}

// Items of a CSV, Excel, JSON or text file, and notes on how it was read.
export async function readFile(file) {
  const body = new FormData()
  body.append('file', file)
  return call('POST', '/api/items/read', body)
}
