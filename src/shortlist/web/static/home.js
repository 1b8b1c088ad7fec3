// The owner's studies.
import { $, attempt, call, make } from './api.js'

async function list() {
  const { studies } = await call('GET', '/api/studies')
  $('#empty').hidden = studies.length > 0
  $('#studies').replaceChildren(...studies.map(line))
  $('#studies').removeAttribute('aria-busy')
}

function line(study) {
  const link = make('a', { href: `/studies/${encodeURIComponent(study.name)}` }, study.name)
  const badge = make('span', { class: 'badge', 'data-state': study.state }, study.state)
  return make('li', {}, make('div', { class: 'row' }, link, badge), make('p', {}, study.sentence))
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
attempt(list)
