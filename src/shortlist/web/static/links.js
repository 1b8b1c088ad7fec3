// Links of judges on cards with QR codes, to copy, save and print. The page has #sheet-part, #sheet and #sheet-actions.
import { $, copyButton, make } from './api.js'

let links = [] // those that are on the page

// "Ann", "Bob, bob@example.org", "Bob <bob@example.org>", or cells of a spreadsheet.
export function person(text) {
  const email = text.match(/[^\s,;<>"]+@[^\s,;<>"]+/)?.[0] ?? null
  const name = text.replace(email ?? '', '').replace(/[<>"]/g, '').replace(/^[\s,;]+|[\s,;]+$/g, '')
  return { name: name || email, email }
}

export function sheet(made, code = '') {
  links = [...links, ...made]
  $('#sheet-part').hidden = false
  $('#sheet').append(...made.map((link) => card(link, code)))
  const all = () => links.map(({ judge, study, link }) => [judge ?? 'Anyone', ...(areMany() ? [study] : []), link].join('\t')).join('\n')
  $('#sheet-actions').replaceChildren(copyButton('Copy all', all, $('#sheet')), make('button', { type: 'button', onclick: saveCsv }, 'Download CSV'),
    make('button', { type: 'button', onclick: () => print() }, 'Print'))
  $('#sheet-part').scrollIntoView({ block: 'nearest' })
}

const areMany = () => links.some(({ study }) => study !== links[0].study)

function card({ judge, study, link, qr }, code) {
  const shown = make('span', { class: 'secret' }, link)
  return make('li', {}, make('strong', { dir: 'auto' }, judge ?? study), judge ? make('p', { class: 'for', dir: 'auto' }, study) : null,
    svg(qr, `QR code of the link of ${judge ?? 'everybody'}`), shown,
    code ? make('p', {}, 'Code: ', make('strong', {}, code)) : null, copyButton('Copy', link, shown))
}

function svg({ size, path: squares }, label) {
  const make = (tag, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
    return element
  }
  const picture = make('svg', { viewBox: `0 0 ${size} ${size}`, role: 'img', 'aria-label': label, 'shape-rendering': 'crispEdges' })
  picture.append(make('path', { d: squares }))
  return picture
}

// A cell that a spreadsheet would take for a formula begins with an apostrophe.
const cell = (text) => `"${String(text ?? '').replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`

function saveCsv() {
  const study = (text) => areMany() ? [text] : []
  const lines = [['name', 'email', ...study('study'), 'link'], ...links.map((one) => [one.judge ?? '', one.email, ...study(one.study), one.link])]
  const file = new Blob([lines.map((line) => line.map(cell).join(',')).join('\r\n')], { type: 'text/csv' })
  const place = make('a', { href: URL.createObjectURL(file), download: 'judges.csv' })
  place.click()
  setTimeout(() => URL.revokeObjectURL(place.href), 1000)
}
