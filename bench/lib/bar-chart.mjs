// Grouped bars with their spread, as SVG. Written by hand: 80 lines of rectangles need no library,
// and the ones that are well kept (Vega, Plot) bring a hundred times the code and a DOM.

const WIDTH = 960
const PLOT = { left: 70, top: 50, right: 20, height: 300 }
const COLOURS = [
  '#2563eb',
  '#ea580c',
  '#16a34a',
  '#9333ea',
  '#dc2626',
  '#0891b2',
  '#ca8a04',
  '#475569',
]

const escaped = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;')
const text = (x, y, words, more = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(words)}</text>`

/**
 * @typedef {{ median: number, p10: number, p90: number }} Bar
 * @param {{ title: string, unit: string, groups: string[], series: string[],
 *   bars: (Bar | null)[][], logarithmic?: boolean }} chart bars[group][series]
 */
export function barChart(chart) {
  const { groups, series, bars } = chart
  const scale = axis(chart)
  const plotWidth = WIDTH - PLOT.left - PLOT.right
  const groupWidth = plotWidth / groups.length
  const barWidth = (groupWidth * 0.86) / series.length
  const bottom = PLOT.top + PLOT.height
  const parts = [
    text(WIDTH / 2, 24, `${chart.title} (${chart.unit})`, 'text-anchor="middle" font-size="16"'),
  ]
  for (const tick of scale.ticks) {
    const y = bottom - scale.place(tick) * PLOT.height
    parts.push(`<path d="M${PLOT.left} ${y.toFixed(1)}H${WIDTH - PLOT.right}" stroke="#ddd"/>`)
    parts.push(text(PLOT.left - 8, y + 4, tick, 'text-anchor="end"'))
  }
  groups.forEach((group, g) => {
    const left = PLOT.left + g * groupWidth + groupWidth * 0.07
    parts.push(text(left + groupWidth * 0.43, bottom + 20, group, 'text-anchor="middle"'))
    bars[g].forEach((bar, s) => {
      if (isThere(bar)) parts.push(...drawBar(bar, left + s * barWidth, barWidth, s, scale, bottom))
    })
  })
  const legendRows = Math.ceil(series.length / 4)
  series.forEach((name, s) => {
    const x = PLOT.left + (s % 4) * (plotWidth / 4)
    const y = bottom + 48 + Math.floor(s / 4) * 20
    parts.push(`<rect x="${x}" y="${y - 10}" width="12" height="12" fill="${colour(s)}"/>`)
    parts.push(text(x + 18, y, name))
  })
  const height = bottom + 50 + legendRows * 20
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${parts.join('\n')}
</svg>
`
}

/** NaN: what this machine can't do has no bar. */
const isThere = (bar) => bar !== null && !Number.isNaN(bar.median)
const colour = (index) => COLOURS[index % COLOURS.length]

function drawBar(bar, x, width, index, scale, bottom) {
  const y = (value) => bottom - scale.place(value) * PLOT.height
  const middle = (x + width / 2).toFixed(1)
  return [
    `<rect x="${x.toFixed(1)}" y="${y(bar.median).toFixed(1)}" width="${(width * 0.92).toFixed(1)}" height="${(bottom - y(bar.median)).toFixed(1)}" fill="${colour(index)}"/>`,
    `<path d="M${middle} ${y(bar.p10).toFixed(1)}V${y(bar.p90).toFixed(1)}" stroke="#111"/>`,
  ]
}

function axis({ bars, logarithmic }) {
  const all = bars.flat().filter(isThere)
  const largest = Math.max(...all.map((bar) => bar.p90))
  if (logarithmic) {
    const from = Math.floor(Math.log10(Math.min(...all.map((bar) => bar.p10))))
    const to = Math.ceil(Math.log10(largest))
    const ticks = Array.from({ length: to - from + 1 }, (_, i) =>
      Number((10 ** (from + i)).toPrecision(1)),
    )
    return { ticks, place: (value) => (Math.log10(value) - from) / (to - from) }
  }
  const step = [1, 2, 5].map((n) => n * 10 ** Math.floor(Math.log10(largest / 4)))
  const size = step.find((candidate) => largest / candidate <= 6) ?? step[2] * 2
  const top = Math.ceil(largest / size) * size
  const ticks = Array.from({ length: Math.round(top / size) + 1 }, (_, i) =>
    Number((i * size).toPrecision(3)),
  )
  return { ticks, place: (value) => value / top }
}
