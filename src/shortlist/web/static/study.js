// The owner's dashboard. The service says when there is something new (server-sent events), and the page then reads it.
import { $, attempt, call, make, path, plain, say } from './api.js'
import { addFiles, editor, readFile } from './editor.js'
import { put, sure } from './owner.js'
import { activity, allocation, percent, progress, ratings } from './plots.js'

const STALE = 25_000 // ms without a sign of life: the service gives one every ten seconds
const AGAIN = 5000
const REST = 3 // times as long as a look took, so that a large study has time for its judges
const QUICK = 100 // ms; after a look that took less there is no rest
const FEW = 40 // items to show at first
const PRICE = 'Everything that was proved with the larger value is worked out again. After the first question a proof still states '
  + 'the largest value that was ever set. It cannot be made larger again.'
const study = $('#main').dataset.study
let drawn = '' // what the plots were drawn from
let seen = null // when the page was last in step with the service
let shown = null
let all = false // whether all items are to be seen

// --- looking ---

let looking = null, again = false

// One look at a time; news that come meanwhile are one more look.
async function look() {
  if (looking) {
    again = true
    return
  }
  const begin = performance.now()
  looking = attempt(async () => {
    show(await call('GET', path('studies', study)))
    alive()
  }, null)
  await looking
  const took = performance.now() - begin
  if (took > QUICK) await new Promise((resolve) => { setTimeout(resolve, REST * took) })
  looking = null
  if (again) {
    again = false
    look()
  }
}

function listen() {
  const news = new EventSource(path('studies', study, 'news'))
  news.addEventListener('changed', look)
  news.addEventListener('alive', alive)
  news.addEventListener('error', () => {
    stale()
    if (news.readyState === EventSource.CLOSED) {
      news.close()
      setTimeout(() => { look(); listen() }, AGAIN)
    }
  })
}

function alive() {
  seen = Date.now()
  $('#stale').hidden = true
}

function stale() {
  const when = seen === null ? '' : ` It shows the study as it was at ${new Date(seen).toLocaleTimeString()}.`
  const text = `This page is not up to date: the service does not answer.${when} It tries again by itself.`
  if ($('#stale').textContent !== text) $('#stale').textContent = text
  $('#stale').hidden = false
}

function show(board) {
  const { verdict } = board
  shown = board
  $('#state').textContent = $('#state').dataset.state = board.state
  for (const button of document.querySelectorAll('[data-state]')) {
    if (button.tagName === 'BUTTON') button.setAttribute('aria-pressed', button.dataset.state === board.state)
  }
  $('.verdict').classList.toggle('done', verdict.done)
  if ($('#sentence').textContent !== board.plain && verdict.done) say(board.plain)
  $('#sentence').textContent = board.plain
  $('#filled').value = board.filled
  $('#filled-text').textContent = `${Math.floor(100 * board.filled)} % of the proof is filled`
  $('#left').textContent = left(board)
  $('#next').textContent = board.next_votes
  $('#caveats').hidden = !verdict.caveats.length
  put('#caveats', verdict.caveats.map((text) => make('li', {}, text)))
  $('#guarantee').parentElement.hidden = !verdict.guarantee
  $('#guarantee').textContent = verdict.guarantee ? sentence(plain(verdict.guarantee)) : ''
  $('#claims').hidden = !board.claims.length
  $('#claims').textContent = board.claims.join(' ')
  $('#head').textContent = `Record: ${board.head.events} ${board.head.events === 1 ? 'event' : 'events'}, hash ${board.head.hash}.`
  $('#advice').hidden = !board.advice
  $('#advice').textContent = board.advice ? sentence(board.advice) : ''
  $('#k').textContent = board.settings.k
  plots(board)
  judges(board)
  recent(board)
  settings(board)
  $('#publish').textContent = board.published ? 'Take the results back' : 'Publish the results'
  $('#results-link').hidden = !board.published
}

function left(board) {
  if (board.verdict.done) return ''
  const pending = board.counts.pending ? ` ${board.counts.pending} ${board.counts.pending === 1 ? 'question is' : 'questions are'} waiting for an answer.` : ''
  const open = pending + unsettled(board.counts.answered)
  if (board.verdict.votes_left === null) return `It is too early to estimate how many votes are needed.${open}`
  const range = `${round(board.votes_left_low)} to ${round(board.votes_left_high)}`
  return `About ${round(board.verdict.votes_left)} more votes are needed (roughly ${range}).${open}`
}

function unsettled(answers) {
  return answers ? ` ${answers} ${answers === 1 ? 'answer' : 'answers'} can still be taken back and will count soon.` : ''
}

function plots(board) {
  const room = $('#progress-plot').clientWidth
  const key = JSON.stringify([board.items, board.bound_history.length, board.verdict.votes, board.filled, room, all, board.activity])
  if (key === drawn) return
  drawn = key
  const few = all ? board.items : board.items.slice(0, Math.max(FEW, board.settings.k + 5))
  $('#all-items').hidden = few.length === board.items.length
  $('#all-items').textContent = `Show all ${board.items.length} items`
  $('#ratings').replaceChildren(...ratings(few, board.settings.k))
  $('#progress-plot').replaceChildren(progress(board.bound_history, { votes: board.verdict.votes, filled: board.filled }, room))
  $('#pairs').replaceChildren(allocation(board.pairs, board.items))
  $('#activity').replaceChildren(...activity(board.activity))
  const clock = (time) => new Date(1000 * time).toLocaleTimeString()
  const { start, span } = board.activity
  $('#activity-help').textContent = start ? `From ${clock(start)} to ${clock(start + 30 * span)}; the busiest judges have a line each.` : 'No answers yet.'
}

function judges(board) {
  put('#judges', board.judges.map((judge) => make('tr', { class: judge.is_voided ? 'gone' : null },
    make('td', { 'data-label': 'Judge', dir: 'auto' }, judge.name), make('td', { 'data-label': 'Votes' }, String(votesOf(judge))),
    make('td', { 'data-label': 'Skips' }, String(judge.counts.skipped)),
    make('td', { 'data-label': 'Evidence' }, judge.share === null ? '–' : percent(judge.share)),
    make('td', { 'data-label': 'Agrees with others' }, judge.agreement === null ? '–' : percent(judge.agreement)),
    make('td', { 'data-label': 'Chooses A' }, judge.first_share === null ? '–'
      : `${percent(judge.first_share)} (${percent(judge.first_low)}–${percent(judge.first_high)})`),
    make('td', {}, ...actions(judge)))))
}

const votesOf = ({ counts }) => counts.counted + counts.answered

function actions(judge) {
  if (judge.is_voided) return [`voided (${judge.counts.voided})`]
  return [make('button', { type: 'button', 'aria-label': `Void ${judge.name}`, onclick: () => voidJudge(judge) }, 'Void')]
}

function recent(board) {
  put('#recent', board.recent.map((vote) => {
    const tie = vote.outcome === .5, better = vote.outcome > .5 ? vote.first : vote.second
    const worse = better === vote.first ? vote.second : vote.first
    const undo = make('button', { type: 'button', 'aria-label': `Undo the vote of ${vote.judge}`, onclick: () => voidVote(vote) }, 'Undo')
    return make('tr', { class: vote.status === 'counted' ? null : 'gone' },
      make('td', { 'data-label': 'Judge', dir: 'auto' }, vote.judge ?? ''), make('td', { 'data-label': 'Preferred', dir: 'auto' }, tie ? `${better} (tie)` : better),
      make('td', { 'data-label': 'Over', dir: 'auto' }, worse), make('td', { 'data-label': 'When' }, new Date(1000 * vote.at).toLocaleTimeString()), make('td', {}, vote.status === 'counted' ? undo : vote.status))
  }))
}

function settings(board) {
  const set = board.settings
  $('#settings').textContent = [
    `Top ${set.k} of ${board.items.filter((item) => item.proved !== 'withdrawn').length}`, `chance of a wrong answer at most ${percent(set.delta)}`,
    set.tolerance ? `tolerance ${set.tolerance}` : 'no tolerance',
    set.max_votes ? `at most ${set.max_votes.toLocaleString()} votes` : 'no vote limit',
    set.ties ? 'ties allowed' : 'no ties', set.blind ? 'blind' : 'names shown',
    set.cases.length ? `${set.cases.length} cases` : 'no cases', ...(set.cases_claim === 'like these' ? ['each case is used once'] : []),
    set.min_judges > 1 ? `a proof needs at least ${set.min_judges} judges` : 'one judge is enough for a proof',
  ].join(' · ')
  $('#cases').replaceChildren(...set.cases.slice(0, 20).map((text) => make('li', {}, text.slice(0, 80))))
  for (const id of ['#csv', '#all-csv']) $(id).toggleAttribute('hidden', !board.verdict.votes)
  limits(set)
}

// The form shows what is in force, until the owner types something else.
function limits(set) {
  for (const [id, value] of [['#limit-votes', set.max_votes ?? ''], ['#limit-delta', set.delta], ['#limit-judges', set.min_judges]]) {
    const input = $(id)
    if (input.value === (input.dataset.set ?? '')) input.value = String(value)
    input.dataset.set = String(value)
  }
}

// --- acting ---

const act = (task) => attempt(async () => {
  const board = await task()
  if (board?.verdict) show(board)
})

async function voidJudge(judge) {
  const text = `${judge.name} gets no more questions. Their votes (${votesOf(judge)}) no longer count for the items they preferred, `
    + 'but still count against the other items, so removing votes can never help an item. This cannot be undone.'
  if (await sure(`Void all votes of ${judge.name}?`, text, 'Void')) {
    act(() => call('POST', path('studies', study, 'void'), { judge: judge.name }))
  }
}

async function voidVote(vote) {
  const text = `${vote.first} against ${vote.second}, by ${vote.judge}. The vote no longer counts for the preferred item, `
    + 'but still counts against the other one, so removing votes can never help an item. The pair may be asked again.'
  if (await sure('Undo this vote?', text, 'Undo')) act(() => call('POST', path('questions', vote.id, 'void')))
}

for (const button of document.querySelectorAll('button[data-state]')) {
  button.addEventListener('click', () => act(() => call('PUT', path('studies', study, 'state'), { state: button.dataset.state })))
}
$('#limits').addEventListener('submit', async (event) => {
  event.preventDefault()
  const votes = $('#limit-votes'), delta = $('#limit-delta'), judges = $('#limit-judges'), body = {}
  if (votes.value !== votes.dataset.set) body.max_votes = votes.value ? Number(votes.value) : null
  if (delta.value !== delta.dataset.set) body.delta = Number(delta.value)
  if (judges.value !== judges.dataset.set) body.min_judges = Number(judges.value)
  if (!Object.keys(body).length) return
  if ('delta' in body && !await sure('Change the accepted chance of a wrong answer?', PRICE, 'Change')) return
  attempt(async () => {
    const board = await call('PUT', path('studies', study, 'settings'), body)
    votes.value = votes.dataset.set = String(board.settings.max_votes ?? '')
    delta.value = delta.dataset.set = String(board.settings.delta)
    judges.value = judges.dataset.set = String(board.settings.min_judges)
    show(board)
  }, $('#limits-problem'))
})
$('#print').addEventListener('click', () => print())
$('#all-items').addEventListener('click', () => {
  all = true
  plots(shown)
})
$('#publish').addEventListener('click', async () => {
  const published = !shown.published
  const text = 'Everybody who has the address can then see them. Publish them when judging is over: results that judges see influence '
    + 'their votes, and then nothing is proved.'
  if (published && shown.state === 'open' && !await sure('Publish the results while judging goes on?', text, 'Publish')) return
  attempt(async () => {
    await call('PUT', path('studies', study, 'published'), { published })
    await look()
  }, $('#results-problem'))
})

// --- changing items ---

const edited = []
let before = null // the items as they were when the dialog was opened
const redraw = editor($('#edit-list'), edited, () => {}, () => before !== null && !before.can_edit, (place) => {
  const { name } = before.items[place]
  if (before.withdrawn.includes(name)) return make('span', { class: 'moves' }, 'withdrawn')
  return make('div', { class: 'moves' }, make('button', { type: 'button', class: 'plain', 'aria-label': `Withdraw: ${edited[place].name}`,
    onclick: () => inEdit(() => withdraw(name, edited[place].name)) }, 'Withdraw'))
})
const note = (text) => { $('#edit-note').textContent = text }

async function edit() {
  before = await call('GET', path('studies', study, 'items'))
  edited.splice(0, edited.length, ...before.items.map((item) => ({ ...item, name: before.titles[item.name] ?? item.name })))
  $('#edit-more').hidden = !before.can_edit
  $('#edit-k').value = shown.settings.k
  $('#edit-help').textContent = before.can_edit
    ? 'You can change everything until the first question. Links that you gave out stay. The record begins again: publish its hash after this.'
    : 'Correct names and typing errors, or withdraw an item. Votes before and after count as votes on the same item, and the result says what was corrected '
      + 'and when. All pages show the new name; downloads (CSV, report, proof) keep the old one. If the meaning changes, start a new study instead.'
  note('')
  $('#edit-problem').textContent = ''
  redraw()
  $('#edit').showModal()
}

async function save() {
  if (before.can_edit) {
    await call('PUT', path('studies', study, 'items'), { items: edited, k: Number($('#edit-k').value) })
  } else {
    for (const [place, item] of edited.entries()) {
      const old = before.items[place], change = { item: old.name }
      if (item.name !== (before.titles[old.name] ?? old.name)) change.name = item.name
      if (item.text !== old.text) change.text = item.text
      if (Object.keys(change).length > 1) await call('POST', path('studies', study, 'items', 'correct'), change)
    }
  }
  $('#edit').close()
  await look()
}

async function withdraw(item, title) {
  const text = `Nothing more is asked about ${title}, and the answer is among the other items. Its votes stay in the record; what it won over `
    + 'others no longer proves anything. The price: a proof states a larger chance of a wrong answer. This cannot be undone.'
  if (!await sure(`Withdraw ${title}?`, text, 'Withdraw')) return
  before = await call('POST', path('studies', study, 'items', 'withdraw'), { item })
  redraw()
  await look()
}

const inEdit = (task) => attempt(task, $('#edit-problem'))
$('#edit-items').addEventListener('click', () => attempt(edit))
$('#edit-cancel').addEventListener('click', () => $('#edit').close())
$('#edit-save').addEventListener('click', () => inEdit(save))
$('#edit-form').addEventListener('submit', (event) => event.preventDefault())
$('#edit-add').addEventListener('click', () => {
  edited.push({ name: '' })
  redraw({ place: edited.length - 1, what: 'input' })
})
for (const [id, add] of [['#edit-files', (files) => addFiles(files, edited, note)],
  ['#edit-file', async ([file]) => { edited.push(...(await readFile(file)).items) }]]) {
  $(id).addEventListener('change', (event) => inEdit(async () => {
    try {
      await add([...event.target.files])
    } finally {
      event.target.value = ''
      redraw()
    }
  }))
}
addEventListener('resize', () => shown && plots(shown))
document.addEventListener('visibilitychange', () => document.hidden || look())

const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.')

function round(value) {
  const digits = value >= 1000 ? 100 : value >= 100 ? 10 : 1
  return (Math.max(1, Math.round(value / digits)) * digits).toLocaleString()
}

setInterval(() => seen !== null && Date.now() - seen > STALE && stale(), 1000)
look()
listen()
