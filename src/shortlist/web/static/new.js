// A new study.
import { $, attempt, call, make } from './api.js'
import { fromBlocks, fromJson, fromLines, lines } from './items.js'

const form = $('#new')
let loaded = [] // items from a JSON file and from pictures

function written() {
  const format = form.elements.markdown.checked ? 'markdown' : 'text'
  const read = form.elements.mode.value === 'blocks' ? fromBlocks : fromLines
  return read(form.elements.items.value, format)
}

function count() {
  const all = [...written(), ...loaded]
  $('#count').textContent = `${all.length} ${all.length === 1 ? 'item' : 'items'}`
  $('label[for="ballot_size"]').hidden = form.elements.judges_claim.value !== 'public'
  for (const choice of form.elements.alone) choice.disabled = isTolerant()
  $('label[for="min_judges"]').hidden = minJudges() === 1
  $('#tolerant-help').hidden = !isTolerant()
  $('#cases-claim').hidden = !lines(form.elements.cases.value).length
  $('#picture-list').replaceChildren(...loaded.map((item) => make('li', {}, item.name)))
}

const isTolerant = () => Number(form.elements.tolerance.value) > 0
const minJudges = () => (form.elements.alone.value || isTolerant() ? 1 : Number(form.elements.min_judges.value))

async function addPictures(files) {
  for (const file of files) {
    const body = new FormData()
    body.append('file', file)
    const { image } = await call('POST', '/api/uploads', body)
    loaded.push({ name: file.name.replace(/\.\w+$/, ''), image })
    count()
  }
}

async function loadFile(file) {
  const text = await file.text()
  if (file.name.endsWith('.json')) loaded.push(...fromJson(text))
  else form.elements.items.value += (form.elements.items.value.trim() ? '\n' : '') + text
  count()
}

async function create() {
  const value = (name) => form.elements[name].value.trim()
  const body = {
    name: value('name'), items: [...written(), ...loaded], k: Number(value('k')), delta: Number(value('delta')),
    tolerance: Number(value('tolerance') || 0), max_votes: value('max_votes') ? Number(value('max_votes')) : null,
    ties: form.elements.ties.checked, blind: form.elements.blind.checked, instructions: value('instructions'),
    cases: lines(value('cases')), cases_claim: $('#cases-claim').hidden ? 'these' : form.elements.cases_claim.value,
    judges_claim: form.elements.judges_claim.value, ballot_size: Number(value('ballot_size')), min_judges: minJudges(),
    seed: crypto.getRandomValues(new Uint32Array(1))[0] >>> 1,
  }
  const made = await call('POST', '/api/studies', body)
  location.assign(`/studies/${encodeURIComponent(made.name)}`)
}

form.addEventListener('input', count)
form.addEventListener('submit', (event) => {
  event.preventDefault()
  attempt(create)
})
$('#pictures').addEventListener('change', (event) => attempt(() => addPictures(event.target.files)))
$('#file').addEventListener('change', (event) => attempt(() => loadFile(event.target.files[0])))
count()
