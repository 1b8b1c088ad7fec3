// Calls to the service. All pages use only this.

// The page's words (see display.py): t('judge.answers', { n: 3 }).
const words = JSON.parse(document.querySelector('meta[name="words"]')?.content ?? '{}')
const plural = new Intl.PluralRules(document.documentElement.lang)

export function t(name, values = {}) {
  const found = words[name] ?? name
  const text = typeof found === 'string' ? found : found[plural.select(values.n)] ?? found.other
  return text.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole)
}

const token = document.querySelector('meta[name="form-token"]')?.content

export class Refused extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

// What came is not from the service: a proxy's own error page, or the sign-in page of a network.
class NoAnswer extends Error {
  constructor(status) {
    super(t(status === 413 ? 'common.too_large' : 'common.unreachable'))
  }
}

// Milliseconds to wait: a judge's answer is sent again soon, and a study of thousands of items takes a while to draw.
const PATIENCE = document.body.classList.contains('judge') ? 20_000 : 120_000, UPLOAD = 600_000

// The answer's JSON. Throws Refused if the service says no, and another error if it cannot be reached.
export async function call(method, path, body) {
  const headers = {}
  if (token) headers['x-form-token'] = token
  if (body !== undefined && !(body instanceof FormData)) {
    headers['content-type'] = 'application/json'
    body = JSON.stringify(body)
  }
  const signal = AbortSignal.timeout(body instanceof FormData ? UPLOAD : PATIENCE)
  const response = await fetch(path, { method, headers, body, cache: 'no-store', signal })
  if (response.status === 204) return null
  const said = parsed(await response.text())
  if (!said || (!response.ok && !said.detail)) throw new NoAnswer(response.status)
  if (!response.ok) throw new Refused(response.status, said.detail)
  return said
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export const path = (...parts) => '/api/' + parts.map(encodeURIComponent).join('/')

export const $ = (selector) => document.querySelector(selector)

// A new element; texts are texts, never HTML.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (value === true) element.setAttribute(name, '')
    else if (value !== false && value != null) element.setAttribute(name, value)
  }
  element.append(...children.filter((child) => child != null))
  return element
}

// A guarantee without the name of its theorem.
export const plain = (text) => text.replace(/ \([^()]*theorem[^()]*\)/, '')

// For screen readers.
export function say(text) {
  const status = $('#status')
  if (status.textContent !== text) status.textContent = text
}

// Runs a task from a click or submit, and shows what went wrong.
export async function attempt(task, problem = $('#problem')) {
  try {
    if (problem) problem.textContent = ''
    return await task()
  } catch (error) {
    const lost = error instanceof TypeError || error.name === 'TimeoutError' || error.name === 'AbortError'
    const said = lost ? t('common.unreachable') : error.message
    if (problem) problem.textContent = said[0].toUpperCase() + said.slice(1)
    else say(said)
  }
}

// Copies a text, also over plain http, where browsers have no clipboard API. Says false if nothing was copied; the text of
// `shown` is then selected, so that it can be copied by hand.
export async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch { /* not allowed, or not there: the old way */ }
  const area = make('textarea', { class: 'status', readonly: true, 'aria-hidden': 'true', tabindex: '-1' })
  area.value = text
  document.body.append(area)
  area.select()
  const copied = document.execCommand('copy')
  area.remove()
  if (!copied && shown) getSelection().selectAllChildren(shown)
  return copied
}

// A button that copies a text and says truly whether it did.
export function copyButton(label, text, shown = null) {
  const button = make('button', { type: 'button', onclick: async () => {
    const copied = await copyText(typeof text === 'function' ? text() : text, shown)
    say(t(copied ? 'common.copied' : 'common.copy_failed'))
    button.textContent = copied ? t('common.copied') : t('common.copy_failed')
    setTimeout(() => { button.textContent = label }, 4000)
  } }, label)
  return button
}
