// What the owner's pages of a study and of its judges share.
import { $, make } from './api.js'

// Asks before something that cannot be taken back (_confirm.html). What is asked about is a text, or a list of elements.
export function sure(title, about, action) {
  $('#confirm-title').textContent = title
  $('#confirm-text').replaceChildren(...typeof about === 'string' ? [make('p', {}, about)] : about)
  $('#confirm-ok').textContent = action
  $('#confirm').returnValue = ''
  $('#confirm').showModal()
  return new Promise((resolve) => {
    $('#confirm').addEventListener('close', () => resolve($('#confirm').returnValue === 'ok'), { once: true })
  })
}

// Only what changed is put on the page, so that focus stays where it is.
export function put(place, made) {
  const text = made.map((row) => row.outerHTML).join()
  if ($(place).dataset.text === text) return
  $(place).dataset.text = text
  const focused = document.activeElement?.getAttribute('aria-label')
  $(place).replaceChildren(...made)
  if (focused) [...$(place).querySelectorAll('[aria-label]')].find((e) => e.getAttribute('aria-label') === focused)?.focus()
}
