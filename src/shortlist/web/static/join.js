// Where links lead: the token behind the # becomes a cookie, and is taken out of the address at once.
import { $, attempt, call } from './api.js'

const secret = location.hash.slice(1)
history.replaceState(null, '', '/join')

async function enter(name) {
  const session = await call('POST', '/api/sessions', name ? { token: secret, name } : { token: secret })
  if (session.page) return location.replace(encodeURI(session.page))
  $('#say').textContent = `You are invited to judge “${session.study}”.`
  $('#who').hidden = false
  $('#name').focus()
}

function start() {
  if (!secret) {
    $('#say').textContent = 'Please open the whole link you were given.'
    return
  }
  $('#who').addEventListener('submit', (event) => {
    event.preventDefault()
    attempt(() => enter($('#name').value))
  })
  attempt(() => enter())
}

start()
