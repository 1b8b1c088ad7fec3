// All tracks of an event, and links for judges of several tracks.
import { $, attempt, call, make, path } from './api.js'
import { person, sheet } from './links.js'

const EVERY = 5000
const event = $('#main').dataset.event

async function look() {
  if (!document.hidden) await attempt(async () => show(await call('GET', path('events', event))), null)
  setTimeout(look, EVERY)
}

function show({ tracks }) {
  const made = tracks.map(card), text = made.map((track) => track.outerHTML).join()
  if (!$('#names').placeholder) $('#names').placeholder = `Ann, ann@example.org\nBob: ${tracks[0].track}`
  $('#tracks').removeAttribute('aria-busy')
  if ($('#tracks').dataset.text === text) return
  $('#tracks').dataset.text = text
  const focused = document.activeElement?.getAttribute('href')
  $('#tracks').replaceChildren(...made)
  if (focused) [...$('#tracks').querySelectorAll('a')].find((link) => link.getAttribute('href') === focused)?.focus()
}

function card(track) {
  const at = `/studies/${encodeURIComponent(track.name)}`, percent = Math.floor(100 * track.filled)
  return make('li', {}, make('div', { class: 'row' }, make('a', { href: at, dir: 'auto' }, track.track),
    make('span', { class: 'badge', 'data-state': track.state }, track.state)), make('p', { dir: 'auto' }, track.sentence),
  make('p', { class: 'filling' }, make('progress', { max: 1, value: track.filled, 'aria-label': `Share of the proof of ${track.track} that is filled` }),
    `${percent} % of the proof is filled`),
  make('p', { class: 'help' }, `${count(track.items, 'item')} · ${count(track.votes, 'vote')} by ${count(track.judges, 'judge')} · `,
    make('a', { href: `${at}/judges` }, `Judges of ${track.track}`)))
}

const count = (number, word) => `${number.toLocaleString()} ${word}${number === 1 ? '' : 's'}`

// "Ann, ann@example.org: Design, Code"
function judge(line) {
  const [who, tracks] = line.split(/:(?!\/)/, 2)
  return { ...person(who), tracks: (tracks ?? '').split(',').map((track) => track.trim()).filter(Boolean) }
}

$('#add').addEventListener('submit', (submitted) => {
  submitted.preventDefault()
  attempt(async () => {
    const people = $('#names').value.split('\n').map((line) => line.trim()).filter(Boolean).map(judge)
    const made = await call('POST', path('events', event, 'judges'), { people })
    $('#names').value = ''
    sheet(made.links)
  })
})

look()
