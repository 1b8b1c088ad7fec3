() => {
  // Controls without a name, and texts whose contrast with what is behind them is below 4.5 (WCAG AA).
  const unnamed = [...document.querySelectorAll('button, input, textarea, select, a[href], img, progress')].filter((e) => {
    if (e.tagName === 'IMG') return e.getAttribute('alt') === null
    return !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim())
  }).map((e) => e.outerHTML)

  const rgb = (text) => (text.match(/[\d.]+/g) ?? []).map(Number)
  const part = (value) => (value /= 255) <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4
  const light = ([r, g, b]) => .2126 * part(r) + .7152 * part(g) + .0722 * part(b)
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor)
      if (colour.length === 3 || colour[3] > 0) return colour
    }
    return [255, 255, 255]
  }
  const faint = []
  for (const e of document.querySelectorAll('body *')) {
    const text = [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
    if (!text || !e.checkVisibility() || e.closest(':disabled, title')) continue
    const style = getComputedStyle(e)
    const [high, low] = [light(rgb(e instanceof SVGElement ? style.fill : style.color)), light(behind(e))].sort((a, b) => b - a)
    const contrast = (high + .05) / (low + .05)
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)}: ${e.outerHTML.slice(0, 120)}`)
  }
  return { unnamed, faint }
}
