// A new study.
import { $, attempt, call, path, say } from './api.js'
import { advice } from './advice.js'
import { addFiles, editor, readFile } from './editor.js'
import { fromBlocks, fromLines, lines, repeated, tracks } from './items.js'

const form = $('#new')
const listed = [] // items that are edited one by one

function written() {
  const format = form.elements.markdown.checked ? 'markdown' : 'text'
  const read = form.elements.mode.value === 'blocks' ? fromBlocks : fromLines
  return read(form.elements.items.value, format)
}

function count() {
  const all = [...written(), ...listed], twice = repeated(all), groups = tracks(all)
  $('#count').textContent = `${all.length} ${all.length === 1 ? 'item' : 'items'}`
    + (twice.length ? `; ${twice.slice(0, 3).join(', ')} ${twice.length === 1 ? 'is' : 'are'} there twice` : '')
  $('#tracks').hidden = !groups.length
  $('#tracks').textContent = `${groups.length} ${groups.length === 1 ? 'track' : 'tracks'}: ${groups.join(', ')}. Each becomes a study of its own with the settings below.`
  $('#one-by-one').disabled = !written().length
  $('label[for="ballot_size"]').hidden = form.elements.judges_claim.value !== 'public'
  for (const choice of form.elements.alone) choice.disabled = isTolerant()
  $('label[for="min_judges"]').hidden = minJudges() === 1
  $('#tolerant-help').hidden = !isTolerant()
  $('#advice').textContent = advice(groups.length ? Math.max(...groups.map((track) => all.filter((item) => item.track === track).length)) : all.length, Number(form.elements.k.value), Number(form.elements.judges.value), form.elements.judges_claim.value)
  $('#cases-claim').hidden = !lines(form.elements.cases.value).length
}

const isTolerant = () => Number(form.elements.tolerance.value) > 0
const minJudges = () => (form.elements.alone.value || isTolerant() ? 1 : Number(form.elements.min_judges.value))
const redraw = editor($('#listed'), listed, count)

function tell(text) {
  $('#file-note').textContent = text
  say(text)
}

async function loadFile(file) {
  const { items, notes } = await readFile(file)
  listed.push(...items)
  redraw()
  tell([`${items.length} items read from ${file.name}.`, ...notes].join(' '))
}

async function create() {
  const value = (name) => form.elements[name].value.trim()
  const body = {
    name: value('name'), items: [...written(), ...listed], k: Number(value('k')), delta: Number(value('delta')),
    tolerance: Number(value('tolerance') || 0), max_votes: value('max_votes') ? Number(value('max_votes')) : null,
    ties: form.elements.ties.checked, blind: form.elements.blind.checked, instructions: value('instructions'),
    cases: lines(value('cases')), cases_claim: $('#cases-claim').hidden ? 'these' : form.elements.cases_claim.value,
    judges_claim: form.elements.judges_claim.value, ballot_size: Number(value('ballot_size')), min_judges: minJudges(),
    ...(older ? { from_study: older, takes_over: form.elements.takes_over.checked } : {}),
    seed: crypto.getRandomValues(new Uint32Array(1))[0] >>> 1,
  }
  const isEvent = tracks(body.items).length > 0
  const made = await call('POST', isEvent ? '/api/events' : '/api/studies', body)
  location.assign(`/${isEvent ? 'events' : 'studies'}/${encodeURIComponent(made.name)}`)
}

const older = new URLSearchParams(location.search).get('from')

async function startFrom() {
  const { items, titles, withdrawn } = await call('GET', path('studies', older, 'items'))
  listed.push(...items.filter(({ name }) => !withdrawn.includes(name)).map((item) => ({ ...item, name: titles[item.name] ?? item.name })))
  $('#older-name').textContent = older
  $('#older').hidden = false
  redraw()
}

if (older) attempt(startFrom)
form.addEventListener('input', count)
form.addEventListener('submit', (event) => {
  event.preventDefault()
  attempt(create)
})
$('#one-by-one').addEventListener('click', () => {
  listed.push(...written())
  form.elements.items.value = ''
  redraw({ place: 0, what: 'input' })
})
$('#pictures').addEventListener('change', (event) => attempt(async () => {
  try {
    await addFiles([...event.target.files], listed, tell)
  } finally {
    event.target.value = ''
    redraw()
  }
}))
$('#file').addEventListener('change', (event) => attempt(async () => {
  try {
    await loadFile(event.target.files[0])
  } finally {
    event.target.value = ''
  }
}))
count()
