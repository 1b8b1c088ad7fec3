// Plots, drawn by hand from the API's data. Colours come from the style sheet; words are HTML, so that they stay readable.
import { make } from './api.js'

const SVG = 'http://www.w3.org/2000/svg'

function draw(tag, attributes = {}, text) {
  const element = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  if (text !== undefined) element.textContent = text
  return element
}

function canvas(width, height, label) {
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img' })
  svg.append(draw('title', {}, label))
  return svg
}

const scale = (from, to, a, b) => (value) => a + ((value - from) / (to - from || 1)) * (b - a)

// One row per item: its name, its rating with a 95 % interval, how much of its proof is there, and its place.
export function ratings(items, k) {
  const low = Math.min(...items.map((item) => item.low)), high = Math.max(...items.map((item) => item.high))
  const x = scale(low, high, 2, 98)
  return items.map((item, place) => {
    const kind = item.proved ?? 'undecided'
    const svg = draw('svg', { viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' })
    const marks = draw('g', { class: kind })
    if (low < 0 && high > 0) svg.append(draw('line', { x1: x(0), x2: x(0), y1: 0, y2: 12, class: 'axis', 'vector-effect': 'non-scaling-stroke' }))
    marks.append(
      draw('line', { x1: x(item.low), x2: x(item.high), y1: 6, y2: 6, 'stroke-width': 3, opacity: .45, 'vector-effect': 'non-scaling-stroke' }),
      draw('line', { x1: x(item.utility), x2: x(item.utility), y1: 6, y2: 6, 'stroke-width': 11, 'stroke-linecap': 'round', 'vector-effect': 'non-scaling-stroke' }))
    svg.append(marks)
    const words = { in: '✓ in', out: '✗ out', withdrawn: 'withdrawn', undecided: `${rough(item.chance)} likely in` }[kind]
    const share = item.proved === 'withdrawn' ? '–' : `${Math.floor(100 * item.filled)} %`
    const text = `wins about ${percent(1 / (1 + Math.exp(-item.utility)))} of votes against the average item; ${item.votes} votes`
    return make('li', { class: `${kind}${place === k - 1 ? ' last-in' : ''}`, title: `${item.title}: ${text}` },
      make('span', { class: 'name', dir: 'auto' }, item.title), wrap(svg),
      make('span', { class: 'share' }, make('span', { class: 'hidden' }, 'proof '), share), make('span', { class: 'place' }, words))
  })
}

function wrap(svg) {
  const box = make('span', { class: 'interval' })
  box.append(svg)
  return box
}

// The share of the proof that is filled, against votes. `room` is the width there is, in pixels, so that text keeps its size.
export function progress(history, now, room) {
  const width = Math.max(260, Math.min(room || 460, 560)), height = 220, left = 46, bottom = 28
  const points = [...history, now]
  const most = Math.max(...points.map((point) => point.votes), 10)
  const x = scale(0, most, left, width - 12), y = scale(0, 1, height - bottom, 12)
  const svg = canvas(width, height, `${Math.floor(100 * now.filled)} % of the proof is filled after ${now.votes} votes.`)
  for (const level of [0, .25, .5, .75, 1]) {
    svg.append(
      draw('line', { x1: left, x2: width - 12, y1: y(level), y2: y(level), class: level === 1 ? 'delta' : 'axis' }),
      draw('text', { x: left - 6, y: y(level) + 4, 'text-anchor': 'end', class: 'soft' }, `${100 * level} %`),
    )
  }
  const line = points.map((point, place) => `${place ? 'L' : 'M'}${x(point.votes).toFixed(1)} ${y(point.filled).toFixed(1)}`)
  svg.append(
    draw('path', { d: line.join(' '), class: 'curve' }),
    draw('text', { x: left, y: height - 8, class: 'soft' }, '0'),
    draw('text', { x: width - 12, y: height - 8, 'text-anchor': 'end', class: 'soft' }, `${most.toLocaleString()} votes`),
  )
  return svg
}

// Votes per pair, items in the order of the list: the darker, the more.
export function allocation(pairs, items) {
  const names = items.map((item) => item.name), n = names.length
  const order = new Map(names.map((name, place) => [name, place]))
  const size = 400, side = size / n, most = Math.max(1, ...pairs.map((pair) => pair.votes))
  const svg = canvas(size, size, `Votes on ${pairs.length} pairs; most on one pair: ${most}.`)
  svg.append(draw('rect', { x: 0, y: 0, width: size, height: size, class: 'bed' }))
  for (const pair of pairs) {
    const one = order.get(pair.first), other = order.get(pair.second)
    const text = `${pair.first} and ${pair.second}: ${pair.votes} ${pair.votes === 1 ? 'vote' : 'votes'}`
    for (const [row, column] of [[one, other], [other, one]]) {
      const cell = draw('rect', {
        x: column * side, y: row * side, width: Math.max(side - .5, 1), height: Math.max(side - .5, 1), class: 'cell',
        opacity: (.12 + .88 * pair.votes / most).toFixed(2),
      })
      cell.append(draw('title', {}, text))
      svg.append(cell)
    }
  }
  const cut = items.filter((item) => item.top).length * side
  for (const line of [{ x1: cut, x2: cut, y1: 0, y2: size }, { x1: 0, x2: size, y1: cut, y2: cut }]) {
    svg.append(draw('line', { ...line, class: 'cut' }))
  }
  return svg
}

// One row per judge: bars of answers in equal spans of time.
export function activity(found) {
  const most = Math.max(1, ...Object.values(found.judges).flat())
  return Object.entries(found.judges).map(([judge, counts]) => {
    const svg = draw('svg', { viewBox: `0 0 ${counts.length} 10`, preserveAspectRatio: 'none', 'aria-hidden': 'true' })
    counts.forEach((count, place) => count && svg.append(
      draw('rect', { x: place + .08, y: 10 - 10 * count / most, width: .84, height: 10 * count / most, class: 'cell' })))
    const total = counts.reduce((a, b) => a + b, 0)
    const box = make('li', {}, make('span', { class: 'name', dir: 'auto' }, judge || 'no name'), wrap(svg), make('span', {}, String(total)))
    return box
  })
}

// Only what is proved is shown as 0 or 100 %.
const rough = (chance) => `${chance > .99 ? '> 99' : chance < .01 ? '< 1' : Math.round(100 * chance)} %`

export function percent(share) {
  const value = 100 * share
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toPrecision(2).replace(/\.?0+$/, '')} %`
}
