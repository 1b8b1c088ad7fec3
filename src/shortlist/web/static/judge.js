// The judge's page: two cards and an answer. The next pair is loaded in advance and appears at once.
import { $, Refused, call, make, path, say, t } from './api.js'
import { Outbox } from './outbox.js'

const HOLD = 2 // the pair on the screen and the next
const SETTLE = 300 // ms in which a second click on the same spot is not meant for the new pair
const POLL = 3000
const REOPENED = 20_000
const SWIPE = 90 // px to the side
const EDGE = 24 // px at the sides of the screen, where a swipe means the browser
const LEASE = 1000 * Number($('#main').dataset.lease)
const LOOK = Math.min(LEASE / 3, 20_000) // milliseconds between two looks whether the next pair is still needed
const FREE = 1000 * Number($('#main').dataset.undo) - 2000 // ms in which an undo is free, with a little to spare
const study = $('#main').dataset.study
const mine = `shortlist ${study} ${$('#main').dataset.judge}`
const outbox = new Outbox(`${mine} outbox`)
let queue = [] // questions; the first is on the screen
let shown = null // its id
let shownAt = 0
let answered = 0
let turn = { state: 'open', message: '', ballot: null, left: null, needed: null, undo: [] }
let stopped = false // the judge said that they are done
let sending = null // the promise of the answer that is under way
let pause = 1000 // ms before the next try
let timer = 0

// --- what is on the screen ---

function show() {
  const question = turn.state === 'done' || stopped ? null : queue[0]
  $('#pair').hidden = $('#buttons').hidden = !question
  $('#end').hidden = !!question || (turn.state === 'open' && !outbox.size && !stopped)
  $('#undo').disabled = !outbox.size && !lastAnswers().length
  $('#answered').textContent = progressText(question)
  if (!question) return wait()
  if (question.id === shown) return
  shown = $('#pair').dataset.question = question.id
  shownAt = performance.now()
  fill($('#first'), question.first)
  fill($('#second'), question.second)
  $('#case').hidden = question.case === null
  $('#case').textContent = question.case ?? ''
  if (queue[1]) for (const card of [queue[1].first, queue[1].second]) if (card.image) new Image().src = card.thumbnail ?? card.image
  scrollTo(0, 0)
  say(t('judge.new_pair', { a: words($('#first')), b: words($('#second')) }))
}

function progressText(question) {
  if (turn.ballot && question) return t('judge.of', { n: question.place + 1, total: turn.ballot })
  const given = t('judge.answers', { n: answered })
  return turn.left && question ? `${given} · ${t('judge.to_go', { n: roughly(turn.left) })}` : given
}

// Not more digits than are known.
const roughly = (n) => n < 10 ? n : n < 100 ? 5 * Math.round(n / 5) : 10 ** Math.floor(Math.log10(n) - 1) * Math.round(n / 10 ** Math.floor(Math.log10(n) - 1))

function fill(place, card) {
  const letter = place.dataset.letter
  place.classList.remove('chosen')
  place.style.removeProperty('transform')
  place.querySelector('.title').textContent = card.title ?? ''
  place.querySelector('.media').replaceChildren(...media(card, letter))
  place.querySelector('.text').innerHTML = card.html // made safe by the service; the page's policy allows no script
  for (const wide of place.querySelectorAll('.text pre, .text table')) { // so that they can be scrolled with the keyboard
    wide.tabIndex = 0
    wide.setAttribute('role', wide.tagName === 'PRE' ? 'group' : 'table')
    wide.setAttribute('aria-label', t('judge.scrollable'))
  }
}

function media(card, letter) {
  const found = []
  if (card.image) {
    const alt = card.alt ?? card.title ?? t('judge.picture', { letter })
    found.push(make('button', { type: 'button', class: 'picture', title: t('judge.zoom'), onclick: () => zoom(card.image, alt) },
      make('img', { src: card.thumbnail ?? card.image, alt })))
  }
  const label = t('judge.item', { letter })
  if (card.audio) found.push(make('audio', { src: card.audio, controls: true, preload: 'metadata', 'aria-label': label }))
  if (card.video) found.push(make('video', { src: card.video, controls: true, preload: 'metadata', playsinline: true, 'aria-label': label }))
  return found
}

function zoom(image, alt) {
  const picture = $('#zoom img')
  picture.src = image
  picture.alt = alt
  $('#zoom').showModal()
}

const words = (card) => card.innerText.replace(/^[AB]\s/, '').replace(/\s+/g, ' ').slice(0, 200)
const titles = ({ first, second }) => ({ a: first.title ?? 'A', b: second.title ?? 'B' })

function wait() {
  shown = null
  const over = ['done', 'closed', 'finished', 'refused'].includes(turn.state)
  const texts = { open: t(outbox.size ? 'judge.sending' : 'judge.state.open') }
  $('#message').textContent = stopped ? `${t('judge.thanks')} ${t('judge.rest')}` : texts[turn.state] ?? turn.message
  $('#tick').hidden = !stopped && !['done', 'finished'].includes(turn.state)
  $('#go-on').hidden = !stopped
  $('#needs').textContent = turn.needed && !over ? t('judge.needs', { n: roughly(turn.needed) }) : ''
  $('#end').hidden = false
  if (stopped) return
  if (over) {
    $('#progress').value = turn.state === 'closed' ? $('#progress').value : 1
    say(turn.message)
  }
  if (turn.state === 'refused' || turn.state === 'finished') return
  clearTimeout(timer)
  timer = setTimeout(refill, over ? REOPENED : POLL) // the owner may open a study again
}

// What the service says is next. Questions that are answered here already are not shown again.
function next(said) {
  const before = shown
  turn = said
  answered = turn.answered + outbox.entries.filter(({ body }) => 'outcome' in body).length
  if (turn.progress !== null) {
    $('#progress').hidden = false
    $('#progress').value = turn.progress
  }
  queue = turn.state === 'open' ? turn.questions.filter((question) => !outbox.has(question.id)) : []
  queue.sort((one, other) => (other.id === shown) - (one.id === shown)) // keep the pair that is being looked at
  show()
  const isAnswered = outbox.has(before) || lastAnswers().some(({ id }) => id === before) // perhaps in another window
  return before !== null && shown !== null && before !== shown && !isAnswered // the pair was closed meanwhile
}

// --- answering ---

const settled = () => performance.now() - shownAt >= SETTLE

function answer(body, about = settled() && shown) {
  const question = queue[0]
  if (!question || question.id !== about) return
  const note = $('#note').value.trim()
  queue.shift()
  if (body.conflict) queue = [] // the next pair may be about the same item; the service says what follows
  if (!outbox.add(question, note && !body.note ? { ...body, note } : body)) notice(t('judge.elsewhere'))
  else if ('outcome' in body) answered += 1
  $('#note').value = ''
  $('#reason-part').open = false
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
  for (let entry = outbox.first; entry; entry = outbox.first) {
    const { question, body } = entry
    try {
      const said = await call('POST', path('questions', question.id, 'vote'), { ...body, hold: HOLD, showing: shown })
      outbox.remove(question.id)
      online()
      received(said, question, body)
      next(said.next)
    } catch (error) {
      if (!(error instanceof Refused) || [429, 503].includes(error.status)) return offline()
      if (refused(error, question)) return
    }
  }
}

function received(said, question, body) {
  if (said.status === 'late') return notice(t(said.reason === 'no longer needed' ? 'judge.not_needed' : 'judge.late', titles(question)))
  if (said.status === 'lost') return notice(t(turn.ballot ? 'judge.skip_ballot' : 'judge.lost'))
  if (!('outcome' in body)) return
  const before = lastAnswers().filter(({ id }) => id !== question.id) // another window may have sent it too
  localStorage.setItem(`${mine} last`, JSON.stringify([...before, { id: question.id, at: Date.now() }].slice(-3)))
}

// Whether nothing more can be sent from this page. Answers that cannot be sent are kept, for a new link.
function refused(error, question) {
  if (error.status === 401) {
    turn = { ...turn, state: 'closed', message: outbox.size ? t('judge.ended_unsent', { n: outbox.size }) : t('judge.ended') }
    queue = []
    show()
    return true
  }
  if (error.status === 403 && !recently('reload')) { // signed in anew in another window
    location.reload()
    return true
  }
  if (question) {
    outbox.remove(question.id)
    answered = Math.max(answered - 1, 0)
    notice(t('judge.refused', { ...titles(question), why: error.message }))
  }
  show()
  return false
}

function recently(what) {
  const then = Number(sessionStorage.getItem(what) ?? 0)
  sessionStorage.setItem(what, Date.now())
  return Date.now() - then < 20000
}

// --- the network comes and goes ---

function offline() {
  $('#network').textContent = outbox.size ? t('judge.offline', { n: outbox.size }) : t('judge.offline_wait')
  $('#network').hidden = false
  clearTimeout(timer)
  timer = setTimeout(refill, pause)
  pause = Math.min(2 * pause, 8000)
}

function online() {
  pause = 1000
  $('#network').hidden = true
}

// What a judge must know about an answer stays until they have closed it.
function notice(text) {
  const said = text[0].toUpperCase() + text.slice(1)
  if ([...$('#notices').children].some((line) => line.firstChild.textContent === said)) return
  const line = make('li', {}, make('span', {}, said),
    make('button', { type: 'button', class: 'plain', onclick: () => line.remove() }, t('common.close')))
  $('#notices').append(line)
}

async function refill() {
  if (outbox.size) {
    await send()
    if (outbox.size) return
  }
  if (stopped) return
  try {
    const said = await call('POST', path('studies', study, 'questions'), { hold: HOLD })
    online()
    if (next(said)) notice(t('judge.expired'))
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
    const said = await call('POST', path('questions', about, 'show'), { hold: HOLD })
    if (shown === about && !sending && !outbox.size) next(said)
  } catch (error) {
    if (error instanceof Refused) refill() // answered in another window, or the time was over
  }
}

// The page is closed, or only loaded again: then it renews the lease soon.
function leave() {
  const token = document.querySelector('meta[name="form-token"]').content
  const headers = { 'content-type': 'application/json', 'x-form-token': token }
  fetch(path('studies', study, 'leave'), { method: 'POST', keepalive: true, headers, body: JSON.stringify({ showing: shown }) }).catch(() => {})
}

// --- undo, skip ---

const lastAnswers = () => JSON.parse(localStorage.getItem(`${mine} last`) ?? '[]')

async function undo() {
  const unsent = outbox.takeBack(sending !== null)
  if (unsent) {
    answered -= 1
    queue.unshift(unsent)
    shown = null
    return show()
  }
  await sending
  const last = lastAnswers()
  if (!last.length || outbox.size) return
  const { id } = last.pop()
  const left = last.filter(({ at }) => Date.now() - at < FREE) // older ones count already: of those only the last is undone
  try {
    const said = await call('POST', path('questions', id, 'undo'), { hold: HOLD })
    localStorage.setItem(`${mine} last`, JSON.stringify(left))
    stopped = false
    shown = null
    next(said.next)
    if (said.status === 'reopened') say(t('judge.undone_free'))
    else notice(t(said.status !== 'undone' ? 'judge.nothing_to_undo' : turn.ballot ? 'judge.undone_ballot' : 'judge.undone_late'))
  } catch (error) {
    if (error instanceof Refused) {
      localStorage.setItem(`${mine} last`, '[]')
      notice(t('judge.nothing_to_undo'))
      show()
    } else offline()
  }
}

function skip() {
  if (!queue.length || $('#skip-dialog').open) return
  $('#reason').value = ''
  $('#skip-dialog').returnValue = ''
  $('#skip-dialog').dataset.about = shown
  $('#skip-dialog').showModal()
}

$('#skip-dialog').addEventListener('close', () => {
  const choice = $('#skip-dialog').returnValue, about = $('#skip-dialog').dataset.about
  $('#skip-dialog').returnValue = ''
  if (choice === 'first' || choice === 'second') return answer({ skip: 'knows the author', conflict: [choice] }, about)
  const note = choice === 'other' ? $('#reason').value.trim() : '' // own words are stored beside the votes
  if (choice) answer(note ? { skip: choice, note } : { skip: choice }, about)
})
$('#skip-cancel').addEventListener('click', () => $('#skip-dialog').close(''))

// --- my answers ---

async function showMine() {
  $('#my-answers').replaceChildren(make('li', {}, t('common.moment')))
  $('#mine').showModal()
  try {
    const { answers } = await call('GET', path('studies', study, 'me'))
    const lines = answers.reverse().filter(({ status }) => status !== 'pending').map(answerLine)
    $('#my-answers').replaceChildren(...(lines.length ? lines : [make('li', {}, t('judge.no_answers'))]))
  } catch {
    $('#my-answers').replaceChildren(make('li', {}, t('common.unreachable')))
  }
}

function answerLine({ first, second, outcome, status }) {
  const [better, worse] = outcome === null || outcome >= .5 ? [first, second] : [second, first]
  const sign = outcome === null ? '·' : outcome === .5 ? '=' : '›'
  return make('li', {}, make('bdi', {}, better), ` ${sign} `, make('bdi', {}, worse), make('span', { class: 'help' }, t(`judge.status.${status}`)))
}

$('#more').addEventListener('click', showMine)
$('#mine-close').addEventListener('click', () => $('#mine').close())
$('#finish').addEventListener('click', async () => {
  $('#mine').close()
  await send()
  leave()
  stopped = true
  show()
})
$('#go-on').addEventListener('click', () => {
  stopped = false
  refill()
})

// --- hands ---

const FOR_ITSELF = 'a, button, input, textarea, select, summary, audio, video, pre, table, dialog, [contenteditable]'
const isZoomed = () => (window.visualViewport?.scale ?? 1) > 1.05
const isSelecting = () => String(getSelection()) !== ''

// Whether an element, or one around it up to the card, scrolls by itself.
function scrolls(element) {
  for (let e = element; e && e.id !== 'main' && e !== document.body; e = e.parentElement) {
    const style = getComputedStyle(e)
    if (/auto|scroll/.test(style.overflowX) && e.scrollWidth > e.clientWidth + 1) return true
    if (/auto|scroll/.test(style.overflowY) && e.scrollHeight > e.clientHeight + 1) return true
  }
  return false
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-outcome]')
  if (button) return answer({ outcome: Number(button.dataset.outcome) })
  const card = event.target.closest('.card')
  if (!card || event.target.closest(FOR_ITSELF) || isSelecting() || isZoomed() || event.pointerType === 'touch') return
  answer({ outcome: Number(card.dataset.outcome) })
})

const KEYS = {
  ArrowLeft: () => answer({ outcome: 1 }), 1: () => answer({ outcome: 1 }),
  ArrowRight: () => answer({ outcome: 0 }), 2: () => answer({ outcome: 0 }),
  t: () => $('button[data-outcome="0.5"]') && answer({ outcome: .5 }), s: skip, u: undo,
}

document.addEventListener('keydown', (event) => {
  const here = event.target
  const own = here.closest('input, textarea, select, audio, video, pre, table, dialog, [contenteditable]') || document.querySelector('dialog[open]')
  if (own || scrolls(here) || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key.startsWith('Arrow') && (isZoomed() || isSelecting())) return
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]
  if (!act) return
  event.preventDefault()
  act()
})

// A card that is moved far to either side is chosen.
let touch = null
for (const card of document.querySelectorAll('.card')) {
  card.addEventListener('touchstart', (event) => {
    const { clientX: x, clientY: y } = event.touches[0]
    const free = event.touches.length === 1 && !isZoomed() && !isSelecting() && x > EDGE && x < innerWidth - EDGE
    touch = free && !event.target.closest('a, audio, video, pre, table') && !scrolls(event.target) ? { x, y, at: event.timeStamp, about: shown } : null
  }, { passive: true })
  card.addEventListener('touchmove', (event) => {
    if (!touch) return
    const [dx, dy] = moved(event)
    if (event.touches.length > 1 || Math.abs(dy) > Math.max(30, Math.abs(dx))) return letGo(card)
    if (Math.abs(dx) > 20) card.style.setProperty('transform', `translateX(${dx}px)`)
    card.classList.toggle('chosen', Math.abs(dx) > SWIPE)
  }, { passive: true })
  card.addEventListener('touchend', (event) => {
    const [dx, dy] = touch ? moved(event) : [0, 0]
    const meant = touch && touch.about === shown && Math.abs(dx) > SWIPE && Math.abs(dx) > 2 * Math.abs(dy) && event.timeStamp - touch.at < 1500 && !isSelecting()
    letGo(card)
    if (meant) answer({ outcome: Number(card.dataset.outcome) })
  })
  card.addEventListener('touchcancel', () => letGo(card))
}

function moved(event) {
  const { clientX, clientY } = event.changedTouches[0]
  return [clientX - touch.x, clientY - touch.y]
}

function letGo(card) {
  touch = null
  card.classList.remove('chosen')
  card.style.removeProperty('transform')
}

$('#undo').addEventListener('click', undo)
$('#skip').addEventListener('click', skip)
window.addEventListener('online', refill)
window.addEventListener('pageshow', (event) => event.persisted && refill()) // the back button
window.addEventListener('pagehide', leave)
document.addEventListener('visibilitychange', () => !document.hidden && refill())
setTimeout(renew, LEASE / 30) // the page that was here before may have said that it leaves
setInterval(renew, LOOK)
refill()
