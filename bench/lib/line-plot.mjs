// Small line plots side by side, as SVG: one panel per set, one line per setting.

const PANEL = { width: 300, height: 220, left: 52, top: 46, gap: 24, bottom: 40 }
const COLOURS = ['#2563eb', '#ea580c', '#16a34a', '#9333ea', '#dc2626', '#0891b2']

const escaped = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;')
const text = (x, y, words, more = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(words)}</text>`
const middle = 'text-anchor="middle"'

/**
 * @param {{ title: string, x: string, y: string,
 *   panels: { title: string, lines: { name: string, points: [number, number][] }[] }[] }} plot
 */
export function linePlot({ title, x, y, panels }) {
  const names = panels[0].lines.map(({ name }) => name)
  const pitch = PANEL.left + PANEL.width + PANEL.gap
  const width = panels.length * pitch
  const bottom = PANEL.top + PANEL.height
  const parts = [text(width / 2, 20, `${title}: ${y} over ${x}`, `${middle} font-size="15"`)]
  panels.forEach((panel, i) => {
    parts.push(...drawPanel(panel, i * pitch + PANEL.left, bottom))
  })
  names.forEach((name, i) => {
    const left = PANEL.left + i * (width / names.length)
    const top = bottom + PANEL.bottom
    parts.push(`<rect x="${left}" y="${top}" width="12" height="12" fill="${COLOURS[i]}"/>`)
    parts.push(text(left + 18, top + 10, name))
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bottom + PANEL.bottom + 24}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${parts.join('\n')}
</svg>
`
}

function drawPanel({ title, lines }, left, bottom) {
  const points = lines.flatMap((line) => line.points)
  const across = axis(points.map(([x]) => x))
  const up = axis(points.map(([, y]) => y))
  const placeX = (x) => left + (x / across.top) * PANEL.width
  const placeY = (y) => bottom - (y / up.top) * PANEL.height
  const right = left + PANEL.width
  const parts = [text(left + PANEL.width / 2, PANEL.top - 8, title, `${middle} font-weight="bold"`)]
  for (const tick of up.ticks) {
    parts.push(`<path d="M${left} ${placeY(tick).toFixed(1)}H${right}" stroke="#ddd"/>`)
    parts.push(text(left - 6, placeY(tick) + 4, tick, 'text-anchor="end"'))
  }
  for (const tick of across.ticks) parts.push(text(placeX(tick), bottom + 16, tick, middle))
  lines.forEach((line, i) => {
    const at = line.points.map(([x, y]) => `${placeX(x).toFixed(1)} ${placeY(y).toFixed(1)}`)
    parts.push(`<path d="M${at.join('L')}" fill="none" stroke="${COLOURS[i]}" stroke-width="2"/>`)
    for (const [x, y] of line.points) {
      parts.push(
        `<circle cx="${placeX(x).toFixed(1)}" cy="${placeY(y).toFixed(1)}" r="3" fill="${COLOURS[i]}"/>`,
      )
    }
  })
  return parts
}

/** From 0 to a round number, in at most six steps. */
function axis(values) {
  const largest = Math.max(...values, 1e-9)
  const power = 10 ** Math.floor(Math.log10(largest / 4))
  const step = [1, 2, 5, 10].map((n) => n * power).find((size) => largest / size <= 6) ?? 20 * power
  const top = Math.ceil(largest / step) * step
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) =>
    Number((i * step).toPrecision(3)),
  )
  return { top, ticks }
}
