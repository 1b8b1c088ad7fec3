// Plots as SVG, drawn by hand from the API's data. Colours come from the style sheet.

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
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + '…' : text)

// One row per item: its rating, a 95 % interval, and whether it is proved to be in or out; a line below the top k.
// `room` is the width there is, in pixels: on a phone the plot is drawn narrower, so that its text stays readable.
export function ratings(items, k, room) {
  const narrow = room < 600, [left, right, width, most] = narrow ? [125, 95, 400, 16] : [190, 160, 900, 26]
  const row = 26, height = items.length * row + 34
  const low = Math.min(...items.map((item) => item.low)), high = Math.max(...items.map((item) => item.high))
  const x = scale(low, high, left, width - right)
  const sure = items.filter((item) => item.proved).length
  const svg = canvas(width, height, `Ratings of ${items.length} items; ${sure} are proved to be in or out.`)
  if (low < 0 && high > 0) svg.append(draw('line', { x1: x(0), x2: x(0), y1: 0, y2: height - 26, class: 'axis' }))
  items.forEach((item, place) => {
    const y = place * row + row / 2 + 2, kind = item.proved ?? 'undecided'
    const title = draw('title', {}, `${item.name}: ${item.utility.toFixed(2)} (${item.low.toFixed(2)} to ${item.high.toFixed(2)})`)
    const group = draw('g', { class: kind })
    group.append(
      title,
      draw('text', { x: left - 10, y: y + 4, 'text-anchor': 'end', class: 'name' }, short(item.name, most)),
      draw('line', { x1: x(item.low), x2: x(item.high), y1: y, y2: y, 'stroke-width': 3, opacity: .45 }),
      draw('circle', { cx: x(item.utility), cy: y, r: 5.5 }),
      draw('text', { x: width - right + 12, y: y + 4, class: kind }, { in: '✓ in', out: '✗ out', undecided: narrow ? rough(item.chance) : `${rough(item.chance)} likely in` }[kind]),
    )
    svg.append(group)
    if (place === k - 1) {
      const cut = y + row / 2
      svg.append(draw('line', { x1: 10, x2: width - 10, y1: cut, y2: cut, class: 'cut' }))
    }
  })
  for (const [at, anchor] of [[low, 'start'], [high, 'end']]) {
    svg.append(draw('text', { x: x(at), y: height - 8, 'text-anchor': anchor, class: 'soft' }, at.toFixed(1)))
  }
  return svg
}

// The error bound against votes, down to delta, on a logarithmic scale.
export function bound(history, delta, now) {
  const width = 460, height = 240, left = 52, bottom = 30
  const points = [{ votes: 0, error_bound: 1 }, ...history, now].filter((point) => point.error_bound > 0)
  const most = Math.max(...points.map((point) => point.votes), 10)
  const least = Math.min(delta / 2, ...points.map((point) => point.error_bound))
  const x = scale(0, most, left, width - 12), y = scale(0, Math.log(least), 12, height - bottom)
  const svg = canvas(width, height, `The error bound is ${percent(now.error_bound)} after ${now.votes} votes; the goal is ${percent(delta)}.`)
  for (const level of [1, .1, .01, .001, .0001].filter((level) => level >= least)) {
    svg.append(
      draw('line', { x1: left, x2: width - 12, y1: y(Math.log(level)), y2: y(Math.log(level)), class: 'axis' }),
      draw('text', { x: left - 6, y: y(Math.log(level)) + 4, 'text-anchor': 'end', class: 'soft' }, percent(level)),
    )
  }
  const steps = points.map((point, place) => {
    const to = `${x(point.votes).toFixed(1)} ${y(Math.log(point.error_bound)).toFixed(1)}`
    return place ? `H${x(point.votes).toFixed(1)} L${to}` : `M${to}`
  })
  svg.append(
    draw('path', { d: steps.join(' '), class: 'curve' }),
    draw('line', { x1: left, x2: width - 12, y1: y(Math.log(delta)), y2: y(Math.log(delta)), class: 'delta' }),
    draw('text', { x: width - 14, y: y(Math.log(delta)) - 5, 'text-anchor': 'end', class: 'in' }, `goal: ${percent(delta)}`),
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

// Only what is proved is shown as 0 or 100 %.
const rough = (chance) => `${chance > .99 ? '> 99' : chance < .01 ? '< 1' : Math.round(100 * chance)} %`

export function percent(share) {
  const value = 100 * share
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toPrecision(2).replace(/\.?0+$/, '')} %`
}
