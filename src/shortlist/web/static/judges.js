// The owner's page of judges: links and their QR codes, who is let in, conflicts of interest, and whose votes to look at.
import { $, attempt, call, make, path } from './api.js'
import { person, sheet } from './links.js'
import { put, sure } from './owner.js'

const EVERY = 5000
const study = $('#main').dataset.study
const at = (...parts) => path('studies', study, ...parts)
const selected = new Set()
let panel = null

// --- looking ---

async function look() {
  if (!document.hidden) await attempt(async () => show(await call('GET', at('judges'))), null)
  setTimeout(look, EVERY)
}

function show(found) {
  const first = panel === null
  panel = found
  $('#save-limits').hidden = $('#end-open-link').hidden = !panel.open_link
  $('#end-viewer-link').hidden = !panel.viewer_link
  if (first) limits()
  if (first) $('#conflicts').value = conflictLines()
  put('#panelists', panel.judges.filter(({ state }) => state !== 'waiting').map(line))
  const waiting = panel.judges.filter(({ state }) => state === 'waiting')
  $('#waiting-part').hidden = !waiting.length
  put('#waiting', waiting.map(({ name, flags }) => make('li', {}, make('bdi', {}, name), ...flags.map((flag) => make('span', { class: 'flags' }, flag)),
    button('Let in', `Let in ${name}`, () => admit([name], true)), button('Refuse', `Refuse ${name}`, () => admit([name], false)))))
  put('#declared', panel.conflicts.filter(({ declared }) => declared).map(({ judge, item }) =>
    make('li', {}, make('bdi', {}, judge), ' declared an interest in ', make('bdi', {}, item))))
  put('#remarks', panel.remarks.length ? panel.remarks.map(remark) : [make('li', { class: 'help' }, 'None yet.')])
}

function limits() {
  const { code, max_judges, max_votes, approve } = panel.limits
  $('#code').value = code ?? ''
  $('#max_judges').value = max_judges ?? ''
  $('#max_votes').value = max_votes ?? ''
  $('#approve').checked = approve
}

function line(judge) {
  const gone = judge.state === 'voided' || judge.state === 'refused'
  const box = make('input', { type: 'checkbox', 'aria-label': `Select ${judge.name}`, disabled: judge.state === 'voided', onchange: (event) => {
    if (event.target.checked) selected.add(judge.name)
    else selected.delete(judge.name)
  } })
  box.checked = selected.has(judge.name)
  const cell = (label, ...content) => make('td', { 'data-label': label }, ...content)
  return make('tr', { class: gone ? 'gone' : null }, make('td', {}, box),
    cell('Judge', make('bdi', {}, judge.name), make('span', { class: 'help' }, ` ${[judge.pseudonym, judge.email].filter((text) => text && text !== judge.name).join(' · ')}`)),
    cell('Votes', String(judge.votes)), cell('Skips', String(judge.skips)), cell('Not in time', String(judge.lost + judge.late)),
    cell('Evidence', judge.share === null ? '–' : `${Math.round(100 * judge.share)} %`),
    cell('Look at', make('ul', { class: 'flags' }, ...judge.flags.map((flag) => make('li', {}, flag)))),
    make('td', {}, ...actions(judge)))
}

function actions(judge) {
  if (judge.state === 'voided') return ['voided']
  const data = `${at('judges', 'data')}?judge=${encodeURIComponent(judge.name)}`
  return [
    judge.state === 'refused' ? button('Let in', `Let in ${judge.name}`, () => admit([judge.name], true)) : null,
    judge.active ? button('End link', `End link of ${judge.name}`, () => act(async () => {
      await call('POST', at('judges', 'revoke'), { judge: judge.name })
      return call('GET', at('judges'))
    })) : null,
    make('a', { href: data, download: 'judge.json', 'aria-label': `Data of ${judge.name}`, class: 'plain' }, 'Data'), ' ',
    judge.name === judge.pseudonym ? null : button('Erase', `Erase the name of ${judge.name}`, () => erase(judge)),
  ].filter(Boolean)
}

function remark({ judge, first, second, outcome, text }) {
  const sign = outcome === null ? 'skipped' : outcome === .5 ? '=' : outcome > .5 ? '›' : '‹'
  return make('li', {}, make('bdi', {}, judge), ': ', make('bdi', {}, first), ` ${sign} `, make('bdi', {}, second), make('span', { class: 'help', dir: 'auto' }, text))
}

const button = (text, label, task) => make('button', { type: 'button', 'aria-label': label, onclick: task }, text)

const act = (task) => attempt(async () => {
  const found = await task()
  if (found?.judges) show(found)
})

// --- links ---

$('#add').addEventListener('submit', (event) => {
  event.preventDefault()
  act(async () => {
    const people = $('#names').value.split('\n').map((text) => text.trim()).filter(Boolean).map(person)
    const made = await call('POST', at('judges'), { people })
    $('#names').value = ''
    sheet(made.links)
    return call('GET', at('judges'))
  })
})

const limitsGiven = () => ({
  code: $('#code').value.trim() || null, max_judges: Number($('#max_judges').value) || null,
  max_votes: Number($('#max_votes').value) || null, approve: $('#approve').checked,
})
$('#open').addEventListener('submit', (event) => {
  event.preventDefault()
  act(async () => {
    sheet([await call('POST', at('open-link'), limitsGiven())], $('#code').value.trim())
    return call('GET', at('judges'))
  })
})
$('#save-limits').addEventListener('click', () => act(() => call('PUT', at('open-link'), limitsGiven())))
$('#end-open-link').addEventListener('click', () => act(async () => {
  await call('DELETE', at('open-link'))
  return call('GET', at('judges'))
}))
$('#renew').addEventListener('click', () => selected.size && act(async () => {
  const made = await call('POST', at('judges', 'links'), { judges: [...selected] })
  sheet(made.links)
  selected.clear()
  return call('GET', at('judges'))
}))
$('#viewer-link').addEventListener('click', () => act(async () => {
  sheet([{ ...await call('POST', at('viewer-link')), judge: 'Viewers' }])
  return call('GET', at('judges'))
}))
$('#end-viewer-link').addEventListener('click', () => act(async () => {
  await call('DELETE', at('viewer-link'))
  return call('GET', at('judges'))
}))

// --- who may judge what ---

const admit = (judges, admit) => act(() => call('POST', at('judges', 'admit'), { judges, admit }))
$('#admit-all').addEventListener('click', () => admit(panel.judges.filter(({ state }) => state === 'waiting').map(({ name }) => name), true))

function conflictLines() {
  const items = new Map()
  for (const { judge, item, declared } of panel.conflicts) if (!declared) items.set(judge, [...items.get(judge) ?? [], item])
  return [...items].map(([judge, list]) => `${judge}: ${list.join(', ')}`).join('\n')
}

// Names may have commas: the longest that is known is taken.
function split(text, known) {
  const found = [], parts = text.split(',').map((part) => part.trim())
  while (parts.length) {
    let n = parts.length
    while (n > 1 && !known.has(parts.slice(0, n).join(', '))) n -= 1
    found.push(parts.splice(0, n).join(', '))
  }
  return found.filter(Boolean)
}

$('#conflicts-form').addEventListener('submit', (event) => {
  event.preventDefault()
  act(async () => {
    const names = new Set(panel.judges.map(({ name }) => name)), items = new Set(panel.items)
    const conflicts = $('#conflicts').value.split('\n').filter((text) => text.trim()).map((text) => {
      const place = text.indexOf(':')
      if (place < 0) throw new Error(`“${text.trim()}” has no colon; write judges, a colon, items`)
      return { judges: split(text.slice(0, place), names), items: split(text.slice(place + 1), items) }
    })
    const found = await call('PUT', at('judges', 'conflicts'), { conflicts })
    panel = found
    $('#conflicts').value = conflictLines()
    return found
  })
})

// --- taking votes out, and names ---

$('#void').addEventListener('click', () => selected.size && act(async () => {
  const judges = [...selected], body = { judges, preview: true }
  const effect = await call('POST', at('judges', 'void'), body)
  if (!await sure(`Void ${judges.length === 1 ? judges[0] : `${judges.length} judges`}?`, preview(effect), 'Void')) return null
  await call('POST', at('judges', 'void'), { judges })
  selected.clear()
  return call('GET', at('judges'))
}))

function preview({ votes, pending, before, after }) {
  const lost = pending ? ` ${pending} open ${pending === 1 ? 'pair counts' : 'pairs count'} as a loss for both items.` : ''
  const texts = [
    `${votes} ${votes === 1 ? 'vote no longer counts' : 'votes no longer count'} for the items they preferred, but still count against the other items, so voiding can never help an item.${lost} This cannot be undone.`,
    before.done ? 'The verdict was reached before and does not change.' : `Now ${before.proved} items are proved in or out; after it ${after.proved}.`,
    before.done ? '' : `Votes to go: now ${round(before.votes_left)}, after it ${round(after.votes_left)}.`,
  ]
  return texts.filter(Boolean).map((text) => make('p', {}, text))
}

const round = (votes) => votes === null ? 'not known yet' : `about ${Math.ceil(votes).toLocaleString()}`

async function erase(judge) {
  const text = `The name, the e-mail address and everything ${judge.name} wrote are erased, and their link ends. Their votes stay under the name `
    + `“${judge.pseudonym}”. Files and backups that were made before keep the name. This cannot be undone.`
  if (await sure(`Erase the name of ${judge.name}?`, [make('p', {}, text)], 'Erase')) {
    act(async () => {
      await call('POST', at('judges', 'erase'), { judge: judge.name })
      return call('GET', at('judges'))
    })
  }
}

look()
