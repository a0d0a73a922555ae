// Prints what the dashboard of such a run shows.
import type { BrokerState } from '@fabric/broker'
import { type Figures, itemsLeft, promises } from './promises.js'

export const percent = (share: number) => `${(100 * share).toFixed(1)} %`
export const count = (value: number) => value.toLocaleString('en-US')
export const fixed = (value: number | null, digits = 3) =>
  value === null ? '-' : value.toFixed(digits)

export function printReport(figures: Figures, seconds: number): boolean {
  const rows = [
    ...throughput(figures, seconds),
    ...batches(figures),
    ...edges(figures.state),
    ...consumers(figures),
    [
      'vectors',
      `lowest cosine against the model run one text at a time: ${figures.worstCosine.toFixed(6)}`,
    ],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  console.log()
  for (const [name, value] of rows) console.log(`${name.padEnd(width)}  ${value}`)
  console.log()
  const promised = promises(figures)
  for (const { what, kept } of promised) console.log(`${kept ? '  kept' : 'BROKEN'}  ${what}`)
  return promised.every(({ kept }) => kept)
}

function throughput({ state, items }: Figures, seconds: number): string[][] {
  const { actualTokens } = state.batches
  return [
    [
      'items',
      `${count(items)} in ${seconds.toFixed(1)} s: ${count(Math.round(items / seconds))} items/s, ${count(Math.round(actualTokens / seconds))} tokens/s`,
    ],
    [
      'assembly',
      `${fixed(state.assembly.meanUs, 1)} us on average (p50 ${fixed(state.assembly.p50Us, 1)}, p99 ${fixed(state.assembly.p99Us, 1)})`,
    ],
  ]
}

function batches({ state, sort, firstCome }: Figures): string[][] {
  const { fill, closedBy, normal, count: total, paddingWaste } = state.batches
  const closed = Object.entries(closedBy)
    .filter(([, n]) => n > 0)
    .map(([reason, n]) => `${reason} ${n}`)
  return [
    [
      'batches',
      `${total} (sorting everything first: ${sort.batches}), ${normal.count} of them normal with ${count(normal.items)} items`,
    ],
    [
      'fill',
      `p1 ${fixed(fill.normal.p1)}  p10 ${fixed(fill.normal.p10)}  p50 ${fixed(fill.normal.p50)}  p90 ${fixed(fill.normal.p90)}  p99 ${fixed(fill.normal.p99)}  (normal batches)`,
    ],
    ['closed by', closed.join(', ')],
    [
      'padding waste',
      `${percent(paddingWaste ?? 0)} (sorting everything first: ${percent(sort.waste)}, first-come batching: ${percent(firstCome.waste)})`,
    ],
  ]
}

function edges(state: BrokerState): string[][] {
  const { gate, cleanup } = state
  return [
    ['gate', `held for ${(gate.heldNs / 1e9).toFixed(3)} s, opened because: ${gate.reason}`],
    [
      'cleanup',
      `${cleanup.entries} ${cleanup.entries === 1 ? 'entry' : 'entries'}, ${cleanup.seconds.toFixed(1)} s, ${cleanup.batches} batches, ${count(cleanup.items)} items`,
    ],
    ['items left', String(itemsLeft(state))],
  ]
}

function consumers({ state, killed }: Figures): string[][] {
  const each = state.consumers.flatMap((consumer) => [
    [
      `${consumer.name}`,
      `${consumer.batches} batches, idle ${percent(consumer.idleShareDuringInput ?? 0)} during the input; ring: ${consumer.ring?.pagesReason ?? `none (${consumer.transportReason})`}`,
    ],
  ])
  return killed === null
    ? each
    : [...each, [killed, `killed on the way; ${count(state.items.reclaimed)} items reclaimed`]]
}
