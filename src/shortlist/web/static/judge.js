// The judge's page: two cards and an answer. The next pair is loaded in advance and appears at once.
import { $, Refused, call, path, say } from './api.js'
import { Outbox } from './outbox.js'

const HOLD = 2 // the pair on the screen and the next
const SETTLE = 300 // ms in which a second click on the same spot is not meant for the new pair
const POLL = 3000
const RENEW = 1000 * Number($('#main').dataset.lease) / 3 // ms after which a pair on the screen is kept for longer
const study = $('#main').dataset.study
const mine = `shortlist ${study} ${$('#main').dataset.judge}`
const outbox = new Outbox(`${mine} outbox`)
let queue = [] // questions; the first is on the screen
let shown = null // its id
let shownAt = 0
let answered = 0
let ballot = null // how many pairs the judge is asked about, if each judge is asked once
let state = 'open'
let sending = null // the promise of the answer that is under way
let pause = 1000 // ms before the next try
let timer = 0

// --- what is on the screen ---

function show() {
  const question = state === 'done' ? null : queue[0]
  $('#pair').hidden = $('#buttons').hidden = !question
  $('#end').hidden = !!question || (state === 'open' && !outbox.size)
  $('#undo').disabled = !outbox.size && !localStorage.getItem(`${mine} last`)
  $('#answered').textContent = ballot && question ? `${question.place + 1} of ${ballot}` : `${answered} ${answered === 1 ? 'answer' : 'answers'}`
  if (!question) return wait()
  if (question.id === shown) return
  shown = $('#pair').dataset.question = question.id
  shownAt = performance.now()
  fill($('#first'), question.first)
  fill($('#second'), question.second)
  $('#case').hidden = question.case === null
  $('#case').textContent = question.case ?? ''
  if (queue[1]) for (const card of [queue[1].first, queue[1].second]) if (card.image) new Image().src = card.image
  say(`New pair. A: ${words($('#first'))}. B: ${words($('#second'))}.`)
}

function fill(place, card) {
  place.classList.remove('chosen')
  place.querySelector('.title').textContent = card.title ?? ''
  const image = place.querySelector('img')
  image.hidden = !card.image
  if (card.image) image.src = card.image
  else image.removeAttribute('src')
  image.alt = card.title ?? ''
  place.querySelector('.text').innerHTML = card.html // made safe by the service; the page's policy allows no script
  place.scrollTop = 0
}

const words = (card) => card.innerText.replace(/^[AB]\s/, '').replace(/\s+/g, ' ').slice(0, 200)

function wait() {
  shown = null
  const texts = { open: outbox.size ? 'Sending your answers …' : 'One moment …' }
  $('#message').textContent = texts[state] ?? message
  $('#end').hidden = false
  if (['done', 'closed', 'finished'].includes(state)) {
    $('#progress').value = state === 'closed' ? $('#progress').value : 1
    say(message)
  } else {
    clearTimeout(timer)
    timer = setTimeout(refill, POLL)
  }
}

let message = ''

// What the service says is next. Questions that are answered here already are not shown again.
function next(turn) {
  state = turn.state
  message = turn.message
  ballot = turn.ballot
  if (turn.answered !== null) answered = turn.answered + outbox.size
  if (turn.progress !== null) {
    $('#progress').hidden = false
    $('#progress').value = turn.progress
  }
  queue = state === 'open' ? turn.questions.filter((question) => !outbox.has(question.id)) : []
  queue.sort((one, other) => (other.id === shown) - (one.id === shown)) // keep the pair that is being looked at
  show()
}

// --- answering ---

const settled = () => performance.now() - shownAt >= SETTLE

function answer(body, about = settled() && shown) {
  const question = queue[0]
  if (!question || question.id !== about) return
  queue.shift()
  outbox.add(question, body)
  answered += 1
  show()
  send()
}

async function send() {
  if (sending) return sending
  sending = deliver()
  await sending
  sending = null
}

async function deliver() {
  while (outbox.size) {
    const { question, body } = outbox.first
    try {
      const said = await call('POST', path('questions', question.id, 'vote'), { ...body, hold: HOLD, showing: shown })
      outbox.shift()
      localStorage.setItem(`${mine} last`, question.id)
      online()
      if (said.status === 'lost') notice(ballot ? 'A skipped pair counts as a loss for both.' : 'After an undo, a skipped pair counts as a loss for both.')
      if (said.status === 'late') notice('The time for this question is over. Your answer is stored but does not count.')
      next(said.next)
    } catch (error) {
      if (error instanceof Refused && ![429, 503].includes(error.status)) refused(error)
      else return offline()
    }
  }
}

function refused(error) {
  if (error.status === 401) {
    state = 'closed'
    queue = []
    message = 'Your link has ended. Thank you for your answers.'
    outbox.entries = []
    return show()
  }
  if (error.status === 403 && !recently('reload')) return location.reload() // signed in anew in another window
  outbox.shift() // answered in another window, or undone
  answered -= 1
  notice(error.message)
  show()
}

function recently(what) {
  const then = Number(sessionStorage.getItem(what) ?? 0)
  sessionStorage.setItem(what, Date.now())
  return Date.now() - then < 20000
}

// --- the network comes and goes ---

function offline() {
  $('#network').textContent = outbox.size
    ? `No connection. ${outbox.size === 1 ? 'Your answer is' : 'Your answers are'} saved here and will be sent when the connection is back.`
    : 'No connection. Trying again …'
  $('#network').hidden = false
  clearTimeout(timer)
  timer = setTimeout(refill, pause)
  pause = Math.min(2 * pause, 8000)
}

function online() {
  pause = 1000
  $('#network').hidden = true
}

function notice(text) {
  $('#network').textContent = text[0].toUpperCase() + text.slice(1)
  $('#network').hidden = false
  setTimeout(online, 6000)
}

async function refill() {
  if (outbox.size) {
    await send()
    if (outbox.size) return
  }
  try {
    const turn = await call('POST', path('studies', study, 'questions'), { hold: HOLD })
    online()
    next(turn)
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return refused(error)
    offline()
  }
}

// Keep the pair on the screen while somebody may be looking at it, and let the next one be replaced if it is not needed;
// a ballot keeps all of its pairs.
async function renew() {
  const about = shown
  if (!about || document.hidden || sending || outbox.size) return
  try {
    const turn = await call('POST', path('questions', about, 'show'), { hold: HOLD })
    if (shown === about && !sending && !outbox.size) next(turn)
  } catch (error) {
    if (error instanceof Refused) refill() // answered in another window, or the time was over
  }
}

// --- undo, skip ---

async function undo() {
  const unsent = outbox.takeBack(sending !== null)
  if (unsent) {
    answered -= 1
    queue.unshift(unsent)
    shown = null
    return show()
  }
  await sending
  const last = localStorage.getItem(`${mine} last`)
  if (!last || outbox.size) return
  try {
    const said = await call('POST', path('questions', last, 'undo'), { hold: HOLD })
    localStorage.removeItem(`${mine} last`)
    answered = Math.max(answered - 1, 0)
    shown = null
    next(said.next)
    if (said.status !== 'undone') say('Undone. Here is the pair again.')
    else notice(`Undone. Your vote was already counted, so it still counts against the other item.${ballot ? '' : ' Here is the pair again.'}`)
  } catch (error) {
    if (error instanceof Refused) {
      localStorage.removeItem(`${mine} last`)
      notice(error.message)
      show()
    } else offline()
  }
}

function skip() {
  if (!queue.length || $('#skip-dialog').open) return
  $('#reason').value = ''
  $('#skip-dialog').dataset.about = shown
  $('#skip-dialog').showModal()
}

$('#skip-dialog').addEventListener('close', () => {
  const choice = $('#skip-dialog').returnValue
  $('#skip-dialog').returnValue = ''
  const reason = choice === 'other' ? $('#reason').value.trim() || 'other' : choice
  if (reason) answer({ skip: reason }, $('#skip-dialog').dataset.about)
})

// --- hands ---

document.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-outcome]')
  if (button) return answer({ outcome: Number(button.dataset.outcome) })
  const card = event.target.closest('.card')
  if (!card || event.target.closest('a') || String(getSelection())) return
  answer({ outcome: Number(card.dataset.outcome) })
})

const KEYS = {
  ArrowLeft: () => answer({ outcome: 1 }), 1: () => answer({ outcome: 1 }),
  ArrowRight: () => answer({ outcome: 0 }), 2: () => answer({ outcome: 0 }),
  t: () => $('button[data-outcome="0.5"]') && answer({ outcome: 0.5 }), s: skip, u: undo,
}

document.addEventListener('keydown', (event) => {
  const writing = event.target.closest('input, textarea, select, [contenteditable]')
  if (writing || event.repeat || event.ctrlKey || event.metaKey || event.altKey || $('#skip-dialog').open) return
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]
  if (!act) return
  event.preventDefault()
  act()
})

$('#undo').addEventListener('click', undo)
$('#skip').addEventListener('click', skip)
window.addEventListener('online', refill)
window.addEventListener('pageshow', (event) => event.persisted && refill()) // the back button
document.addEventListener('visibilitychange', () => !document.hidden && refill())
setInterval(renew, RENEW)
refill()
