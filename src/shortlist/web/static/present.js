// For the big screen: the top k one by one, the best last.
import { $, attempt, call, make, path } from './api.js'

const study = $('#main').dataset.study
let found = null
let open = 0 // how many are revealed

function draw() {
  const top = found.items.filter((item) => item.top), size = found.items.filter((item) => item.proved !== 'withdrawn').length
  $('#before').textContent = found.is_proved
    ? `${found.votes.toLocaleString()} votes by ${found.judges} judges prove the top ${found.k} of ${size}.`
    : `${found.votes.toLocaleString()} votes so far. The top ${found.k} of ${size} are not proved: this is the best guess.`
  $('#top').replaceChildren(...top.map((item, place) => {
    const isOpen = place >= top.length - open
    const picture = isOpen && item.image ? make('img', { src: item.image, alt: `Picture of ${item.title}` }) : null
    return make('li', { class: isOpen ? 'open' : 'closed' }, picture, make('span', { dir: 'auto' }, isOpen ? item.title : '?'))
  }))
  const done = open >= top.length
  $('#reveal').disabled = done
  $('#sentence').hidden = $('#order').hidden = !done
  $('#sentence').textContent = found.plain
}

function next() {
  open += 1
  draw()
}

$('#reveal').addEventListener('click', next)
$('#again').addEventListener('click', () => {
  open = 0
  draw()
  $('#reveal').focus()
})
$('#full').addEventListener('click', () => document.documentElement.requestFullscreen?.())
addEventListener('keydown', (event) => {
  if ((event.key === 'ArrowRight' || event.key === 'PageDown') && found && !$('#reveal').disabled) next()
})
attempt(async () => {
  found = await call('GET', path('studies', study, 'results'))
  draw()
})
