// The results, for everybody once they are published.
import { $, attempt, call, make, path, plain } from './api.js'

const study = $('#main').dataset.study

function winner(item) {
  const picture = item.image ? make('img', { src: item.image, alt: `Picture of ${item.title}`, loading: 'lazy' }) : null
  return make('li', {}, picture, make('span', { class: 'name', dir: 'auto' }, item.title),
    item.proved === 'in' ? make('span', { class: 'place' }, '✓ proved') : null)
}

attempt(async () => {
  const found = await call('GET', path('studies', study, 'results'))
  $('#sentence').textContent = found.plain
  $('.verdict').classList.toggle('done', found.is_proved)
  $('#numbers').textContent = `${found.votes.toLocaleString()} votes by ${found.judges.toLocaleString()} ${found.judges === 1 ? 'judge' : 'judges'} on ${found.items.length} items.`
  $('#caveats').hidden = !found.caveats.length
  $('#caveats').replaceChildren(...found.caveats.map((text) => make('li', {}, text)))
  $('#top').replaceChildren(...found.items.filter((item) => item.top).map(winner))
  $('#rest').replaceChildren(...found.items.filter((item) => !item.top).map((item) => make('li', { dir: 'auto' }, item.title,
    item.proved === 'withdrawn' ? make('span', { class: 'place' }, ' (withdrawn)') : null)))
  $('#claims').textContent = found.claims.join(' ')
  $('#guarantee').textContent = found.guarantee && `Guarantee: ${plain(found.guarantee)}.`
  $('#head').textContent = `event ${found.head.events}, hash ${found.head.hash}`
})
