// Where links lead: the token behind the # becomes a cookie, and is taken out of the address at once.
import { $, attempt, call, t } from './api.js'

const secret = location.hash.slice(1)
history.replaceState(null, '', '/join')

async function enter(given = {}) {
  const session = await call('POST', '/api/sessions', { token: secret, ...given })
  if (session.page) return location.replace(encodeURI(session.page))
  $('#say').textContent = t('join.invited', { study: session.study })
  $('#who').hidden = false
  $('#code-part').hidden = !session.needs_code
  $('#code').required = session.needs_code
  $('#name').focus()
}

function start() {
  if (!secret) {
    $('#say').textContent = t('join.whole_link')
    return
  }
  $('#who').addEventListener('submit', (event) => {
    event.preventDefault()
    const code = $('#code').value.trim()
    attempt(() => enter({ name: $('#name').value, ...(code && { code }) }))
  })
  attempt(async () => {
    try {
      await enter()
    } finally {
      if ($('#who').hidden) $('#say').textContent = ''
    }
  })
}

start()
