// Calls to the service. All pages use only this.

const token = document.querySelector('meta[name="form-token"]')?.content

export class Refused extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

// The answer's JSON. Throws Refused if the service says no, TypeError if it cannot be reached.
export async function call(method, path, body) {
  const headers = {}
  if (token) headers['x-form-token'] = token
  if (body !== undefined && !(body instanceof FormData)) {
    headers['content-type'] = 'application/json'
    body = JSON.stringify(body)
  }
  const response = await fetch(path, { method, headers, body, cache: 'no-store', signal: AbortSignal.timeout(20000) })
  const text = await response.text()
  const said = text ? JSON.parse(text) : null
  if (!response.ok) throw new Refused(response.status, said?.detail ?? response.statusText)
  return said
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
    const words = lost ? 'Cannot reach the service. Check your connection and try again.' : error.message
    if (problem) problem.textContent = words[0].toUpperCase() + words.slice(1)
    else say(words)
  }
}
