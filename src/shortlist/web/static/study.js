// The owner's dashboard: reads the study again every two seconds.
import { $, attempt, call, make, path, say } from './api.js'
import { allocation, bound, percent, ratings } from './plots.js'

const EVERY = 2000
const PRICE = 'Everything that was proved with the larger value is worked out again. After the first question a proof still states '
  + 'the largest value that was ever set. It cannot be made larger again.'
const study = $('#main').dataset.study
let drawn = '' // what the plots were drawn from

// --- looking ---

async function look() {
  if (!document.hidden) await attempt(async () => show(await call('GET', path('studies', study))), null)
  setTimeout(look, EVERY)
}

function show(board) {
  const { verdict } = board
  $('#state').textContent = $('#state').dataset.state = board.state
  for (const button of document.querySelectorAll('[data-state]')) {
    if (button.tagName === 'BUTTON') button.setAttribute('aria-pressed', button.dataset.state === board.state)
  }
  $('.verdict').classList.toggle('done', verdict.done)
  if ($('#sentence').textContent !== verdict.sentence && verdict.done) say(verdict.sentence)
  $('#sentence').textContent = verdict.sentence
  $('#left').textContent = left(board)
  $('#caveats').hidden = !verdict.caveats.length
  rows('#caveats', verdict.caveats.map((text) => make('li', {}, text)))
  $('#guarantee').parentElement.hidden = !verdict.guarantee
  $('#guarantee').textContent = verdict.guarantee ? sentence(verdict.guarantee) : ''
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
}

function left(board) {
  if (board.verdict.done) return ''
  const pending = board.counts.pending ? ` ${board.counts.pending} ${board.counts.pending === 1 ? 'question is' : 'questions are'} waiting for an answer.` : ''
  if (board.verdict.votes_left === null) return `It is too early to estimate how many votes are needed.${pending}`
  const range = `${round(board.votes_left_low)} to ${round(board.votes_left_high)}`
  return `About ${round(board.verdict.votes_left)} more votes are needed (roughly ${range}).${pending}`
}

function plots(board) {
  const room = $('#ratings').clientWidth
  const key = JSON.stringify([board.items, board.bound_history.length, board.verdict.votes, board.settings.delta, room])
  if (key === drawn) return
  drawn = key
  $('#ratings').replaceChildren(ratings(board.items, board.settings.k, room))
  $('#bound').replaceChildren(bound(board.bound_history, board.settings.delta, board.verdict))
  $('#pairs').replaceChildren(allocation(board.pairs, board.items))
}

function judges(board) {
  $('#end-open-link').hidden = !board.open_link
  rows('#judges', board.judges.map((judge) => make('tr', { class: judge.is_voided ? 'gone' : null },
    make('td', {}, judge.name), make('td', {}, String(judge.counts.counted)), make('td', {}, String(judge.counts.skipped)),
    make('td', {}, judge.agreement === null ? '–' : percent(judge.agreement)),
    make('td', {}, judge.first_share === null ? '–'
      : `${percent(judge.first_share)} (${percent(judge.first_low)}–${percent(judge.first_high)})`),
    make('td', {}, ...actions(judge)))))
}

function actions(judge) {
  if (judge.is_voided) return [`voided (${judge.counts.voided})`]
  const button = (text, label, task) => make('button', { type: 'button', 'aria-label': `${label} ${judge.name}`, onclick: task }, text)
  const end = judge.active ? button('End link', 'End the link of', () => endLink(judge.name)) : null
  return [button('New link', 'New link for', () => newLink(judge.name)), end,
    button('Void', 'Void all votes of', () => voidJudge(judge))].filter(Boolean)
}

function recent(board) {
  rows('#recent', board.recent.map((vote) => {
    const tie = vote.outcome === .5, better = vote.outcome > .5 ? vote.first : vote.second
    const worse = better === vote.first ? vote.second : vote.first
    const undo = make('button', { type: 'button', 'aria-label': `Undo the vote of ${vote.judge}`, onclick: () => voidVote(vote) }, 'Undo')
    return make('tr', { class: vote.status === 'counted' ? null : 'gone' },
      make('td', {}, vote.judge ?? ''), make('td', {}, tie ? `${better} (tie)` : better), make('td', {}, worse),
      make('td', {}, new Date(1000 * vote.at).toLocaleTimeString()), make('td', {}, vote.status === 'counted' ? undo : vote.status))
  }))
}

// Only what changed is put on the page, so that focus stays where it is.
function rows(place, made) {
  const text = made.map((row) => row.outerHTML).join()
  if ($(place).dataset.text === text) return
  $(place).dataset.text = text
  const focused = document.activeElement?.getAttribute('aria-label')
  $(place).replaceChildren(...made)
  if (focused) [...$(place).querySelectorAll('button')].find((b) => b.getAttribute('aria-label') === focused)?.focus()
}

function settings(board) {
  const set = board.settings
  $('#settings').textContent = [
    `Top ${set.k} of ${board.items.length}`, `chance of a wrong answer at most ${percent(set.delta)}`,
    set.tolerance ? `tolerance ${set.tolerance}` : 'no tolerance',
    set.max_votes ? `at most ${set.max_votes.toLocaleString()} votes` : 'no vote limit',
    set.ties ? 'ties allowed' : 'no ties', set.blind ? 'blind' : 'names shown',
    set.cases.length ? `${set.cases.length} cases` : 'no cases', ...(set.cases_claim === 'like these' ? ['each case is used once'] : []),
    set.min_judges > 1 ? `a proof needs at least ${set.min_judges} judges` : 'one judge is enough for a proof',
    `sampling rule ${set.sampling}`, `stopping rule ${set.stopping}`,
  ].join(' · ')
  $('#cases').replaceChildren(...set.cases.slice(0, 20).map((text) => make('li', {}, text.slice(0, 80))))
  $('#csv').toggleAttribute('hidden', !board.verdict.votes)
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

function newLink(judge) {
  return act(async () => { link(await call('POST', path('studies', study, 'judges', 'link'), { judge })) })
}

function endLink(judge) {
  return act(async () => {
    await call('POST', path('studies', study, 'judges', 'revoke'), { judge })
    return call('GET', path('studies', study))
  })
}

async function voidJudge(judge) {
  const text = `${judge.name} gets no more questions. Their votes (${judge.counts.counted}) no longer count for the items they preferred, `
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

function sure(title, text, action) {
  $('#confirm-title').textContent = title
  $('#confirm-text').textContent = text
  $('#confirm-ok').textContent = action
  $('#confirm').returnValue = ''
  $('#confirm').showModal()
  return new Promise((resolve) => {
    $('#confirm').addEventListener('close', () => resolve($('#confirm').returnValue === 'ok'), { once: true })
  })
}

function link(made) {
  const copy = make('button', { type: 'button', onclick: async () => {
    await navigator.clipboard?.writeText(made.link)
    say('Copied.')
    copy.textContent = 'Copied'
  } }, 'Copy')
  const name = made.judge ?? 'Anyone'
  $('#links').append(make('li', {}, make('strong', {}, name), make('span', { class: 'secret' }, made.link), copy))
}

for (const button of document.querySelectorAll('button[data-state]')) {
  button.addEventListener('click', () => act(() => call('PUT', path('studies', study, 'state'), { state: button.dataset.state })))
}
$('#add-judges').addEventListener('submit', (event) => {
  event.preventDefault()
  act(async () => {
    const names = $('#names').value.split(/[,\n]/).map((name) => name.trim()).filter(Boolean)
    const { links } = await call('POST', path('studies', study, 'judges'), { names })
    links.forEach(link)
    $('#names').value = ''
    return call('GET', path('studies', study))
  })
})
$('#open-link').addEventListener('click', () => act(async () => {
  link(await call('POST', path('studies', study, 'open-link')))
  return call('GET', path('studies', study))
}))
$('#end-open-link').addEventListener('click', () => act(async () => {
  await call('DELETE', path('studies', study, 'open-link'))
  return call('GET', path('studies', study))
}))
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

const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.')

function round(value) {
  const digits = value >= 1000 ? 100 : value >= 100 ? 10 : 1
  return (Math.max(1, Math.round(value / digits)) * digits).toLocaleString()
}

look()
