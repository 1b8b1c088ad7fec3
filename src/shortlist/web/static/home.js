// The owner's studies.
import { $, attempt, call, make } from './api.js'

let next = null

async function list() {
  const more = await call('GET', `/api/studies${next ? `?before=${encodeURIComponent(next)}` : ''}`)
  const isArchived = (study) => study.state === 'archived'
  if (!next) $('#empty').hidden = more.studies.length > 0
  $('#studies').append(...more.studies.filter((study) => !isArchived(study)).map(line))
  $('#archived').append(...more.studies.filter(isArchived).map(line))
  $('#archived-count').textContent = $('#archived').children.length
  $('#archive').hidden = !$('#archived').children.length
  $('#studies').removeAttribute('aria-busy')
  next = more.next
  $('#more').hidden = !next
}

function line(study) {
  const link = make('a', { href: `/studies/${encodeURIComponent(study.name)}` }, study.name)
  const badge = make('span', { class: 'badge', 'data-state': study.state }, study.state)
  const event = study.event ? make('a', { href: `/events/${encodeURIComponent(study.event)}` }, `All tracks of ${study.event}`) : null
  return make('li', {}, make('div', { class: 'row' }, link, badge), make('p', {}, study.sentence), event && make('p', {}, event))
}

$('#key').addEventListener('click', () => attempt(async () => {
  const { key } = await call('POST', '/api/keys')
  $('#key-text').textContent = key
  $('#made-key').hidden = false
}))
$('#sign-out').addEventListener('click', () => attempt(async () => {
  await call('DELETE', '/api/sessions')
  location.replace('/')
}))
$('#more').addEventListener('click', () => attempt(list))
attempt(list)
