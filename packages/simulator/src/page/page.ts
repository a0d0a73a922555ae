// The page of `--html`: one file, no network, no library; drawn when it is made.
import type { Packed } from '../report/sort-reference.js'
import type { Summary } from '../report/summary.js'
import type { Tally } from '../report/tally.js'
import {
  fillRange,
  histogram,
  paddingRange,
  queueChart,
  shapeLegend,
  tailChart,
  timelineChart,
} from './charts.js'
import { percent, time, whole } from './numbers.js'
import type { Recorder } from './recorder.js'
import { SCRIPT, STYLE } from './style.js'
import { escaped } from './svg.js'

const NS_PER_US = 1000

export function renderPage(
  title: string,
  summary: Summary,
  tally: Tally,
  recorder: Recorder,
): string {
  const sort = tally.sort()
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}: fabric simulate</title>
<style>${STYLE}</style>
<main>
<header><h1>${escaped(title)}</h1><p>The broker’s own scheduling core on a virtual clock, <code>fabric simulate</code></p></header>
${tiles(summary)}
${section(
  'Queue and gate',
  queueChart(recorder),
  `${swatch('staging', 'staging')}${swatch('lane', 'lanes')}${swatch('returned', 'reclaimed or to be tried again')}${swatch('cleanup', 'cleanup')}`,
)}
${section(
  'Consumers',
  timelineChart(recorder),
  `<span>padded length</span>${shapeLegend(recorder)}${swatch('idle', 'idle')}`,
)}
<div class="two">
${section(
  'Fill of the batches',
  histogram(
    'fill: budget tokens over the budget',
    tally.fills,
    sort.fills,
    fillRange([tally.fills, sort.fills]),
  ),
  `${swatch('bar', 'this run')}${swatch('reference', 'sorting everything first')}`,
)}
${section('Padding of the batches', histogram('padding: 1 - actual / padded tokens', recorder.padding, null, paddingRange(recorder.padding)), swatch('bar', 'this run'))}
</div>
${section(
  'The tail: the last batches',
  tailChart(recorder) + timelineChart(recorder, tailFromNs(recorder)),
  `${swatch('tail-normal', 'normal')}${swatch('tail-cleanup', 'cleanup')}${swatch('tail-other', 'due, reclaimed or alone')}${swatch('padding', 'padding')}`,
)}
${summaryTable(summary, sort)}
</main>
<div id="tip" hidden></div>
<script>${SCRIPT}</script>
</html>
`
}

/** The last batches began here; the picture above it begins there too. */
const tailFromNs = ({ tail }: Recorder): number => Math.max(1, tail[0]?.atNs ?? 1)

const swatch = (kind: string, label: string): string =>
  `<span><i class="${kind}"></i>${label}</span>`

function section(title: string, chart: string, legend: string): string {
  return `<section><h2>${title}</h2><div class="legend">${legend}</div>${chart}</section>`
}

function tiles(summary: Summary): string {
  const { items, left, batches, sort, fill, waste, makespanUs, consumers } = summary
  const shares = Object.values(consumers).map(({ idleShare }) => idleShare)
  const idle = shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length)
  const tile = (value: string, name: string, note: string) =>
    `<div class="tile"><b>${value}</b><span>${name}</span><small>${note}</small></div>`
  return `<div class="tiles">${[
    tile(whole(items), 'items', left === 0 ? 'nothing is left' : `${whole(left)} left`),
    tile(whole(batches), 'batches', `sorting everything first: ${whole(sort.batches)}`),
    tile(percent(waste), 'padding waste', `sorting everything first: ${percent(sort.waste)}`),
    tile(percent(fill.all.p50), 'fill, median', `p1 ${percent(fill.all.p1)}`),
    tile(percent(idle), 'idle consumers', 'until the input ended'),
    tile(
      time(makespanUs * NS_PER_US),
      'makespan',
      `gate held ${time(summary.gate.heldUs * NS_PER_US)}`,
    ),
  ].join('')}</div>`
}

function summaryTable(summary: Summary, sort: Packed): string {
  const { fill, normal, closedBy, settled, cleanup, consumers, gate } = summary
  const nonZero = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => `${name} ${whole(count)}`)
      .join(', ') || '-'
  const percentiles = (of: Summary['fill']['all']) =>
    `p1 ${percent(of.p1)}, p10 ${percent(of.p10)}, p50 ${percent(of.p50)}, p90 ${percent(of.p90)}, p99 ${percent(of.p99)}, mean ${percent(of.mean)}`
  const rows = [
    ['settled', nonZero(settled)],
    ['normal batches', `${whole(normal.batches)} with ${whole(normal.items)} items`],
    ['fill, all batches', percentiles(fill.all)],
    ['fill, normal batches', percentiles(fill.normal)],
    ['fill, sorting everything first', percentiles(sort.fills.percentiles())],
    ['closed by', nonZero(closedBy)],
    ['shape switches', whole(summary.switches)],
    [
      'gate',
      `held for ${time(gate.heldUs * NS_PER_US)}, opened because: ${gate.reason ?? 'it did not'}`,
    ],
    [
      'cleanup',
      `${whole(cleanup.entries)} ${cleanup.entries === 1 ? 'entry' : 'entries'}, ${time(cleanup.us * NS_PER_US)}, ${whole(cleanup.batches)} batches, ${whole(cleanup.items)} items`,
    ],
    ...Object.entries(consumers).map(([name, one]) => [
      name,
      `${whole(one.batches)} batches, busy ${time(one.busyUs * NS_PER_US)}, idle ${time(one.idleUs * NS_PER_US)} (${percent(one.idleShare)} until the input ended)`,
    ]),
  ]
  const cells = rows
    .map(([name, value]) => `<tr><th>${escaped(name)}</th><td>${escaped(value)}</td></tr>`)
    .join('')
  return `<section><h2>Summary</h2><table>${cells}</table></section>`
}
