// What a run comes to: one object for machines, a few lines for people.
import { count, duration, percent, short } from './format.js'
import type { RunStats } from './run-stats.js'
import type { FillView, StateView } from './state-view.js'

export interface Summary {
  readonly job: string
  readonly model: number
  readonly broker: string
  readonly output: string
  readonly items: number
  readonly completed: number
  readonly failed: number
  /** Of `failed`: lines that are no item, items that the broker refused, items that ended badly. */
  readonly badLines: number
  readonly refused: number
  readonly ended: Readonly<Record<string, number>>
  /** Items that the job knew already: repeated lines, or a run that was gone on with. */
  readonly duplicates: number
  readonly truncated: number
  readonly tokens: number
  readonly seconds: number
  readonly itemsPerSecond: number
  readonly tokensPerSecond: number
  /** Of the broker during the run: other jobs of the same time are in it. Null when it did not say. */
  readonly batches: number | null
  readonly fill: {
    readonly mean: number
    readonly p1: number | null
    readonly p50: number | null
  } | null
  readonly paddingWaste: number | null
  readonly transport: readonly string[]
  readonly retries: number
  readonly waitedSeconds: number
}

export interface SummaryInput {
  readonly job: string
  readonly model: number
  readonly broker: string
  readonly output: string
  readonly stats: RunStats
  readonly seconds: number
  readonly before: StateView
  readonly after: StateView | null
}

const rounded = (value: number, digits: number) => Number(value.toFixed(digits))

/** The broker's own counts between two looks at them. */
function batchesOf({
  before,
  after,
}: SummaryInput): Pick<Summary, 'batches' | 'fill' | 'paddingWaste'> {
  // The counts of a broker begin anew with it.
  const isSame = after?.text('startedAt') === before.text('startedAt')
  if (after === null || !isSame) return { batches: null, fill: null, paddingWaste: null }
  const since = (path: string) => after.number(path) - before.number(path)
  const padded = since('batches.paddedTokens')
  return {
    batches: since('batches.count'),
    fill: fillBetween(before.fill, after.fill),
    paddingWaste: padded > 0 ? rounded(1 - since('batches.actualTokens') / padded, 4) : null,
  }
}

/** Percentiles cannot be told apart by run: they stand only when the broker had no batch before. */
function fillBetween(before: FillView, after: FillView): Summary['fill'] {
  const batches = after.batches - before.batches
  if (batches <= 0 || after.mean === null) return null
  const sum = after.mean * after.batches - (before.mean ?? 0) * before.batches
  const { p1, p50 } = before.batches === 0 ? after : { p1: null, p50: null }
  return { mean: rounded(Math.min(1, sum / batches), 4), p1, p50 }
}

export function summaryOf(input: SummaryInput): Summary {
  const { job, model, broker, output, stats, seconds, before, after } = input
  const { submit, settled } = stats
  const perSecond = (amount: number) => rounded(seconds > 0 ? amount / seconds : 0, 1)
  return {
    job,
    model,
    broker,
    output,
    items: stats.done,
    completed: stats.completed,
    failed: stats.failed,
    badLines: stats.badLines,
    refused: submit.refused,
    ended: { ...stats.ended },
    duplicates: submit.duplicate,
    truncated: stats.truncated,
    tokens: submit.tokens,
    seconds: rounded(seconds, 3),
    itemsPerSecond: perSecond(settled),
    tokensPerSecond: perSecond(submit.tokens),
    ...batchesOf(input),
    transport: (after ?? before).transportsOf(model),
    retries: submit.retries,
    waitedSeconds: rounded(submit.waitedMs / 1000, 3),
  }
}

function failures({ badLines, refused, ended }: Summary): string {
  const parts = Object.entries({ 'bad lines': badLines, refused, ...ended })
  const said = parts.filter(([, n]) => n > 0).map(([what, n]) => `${count(n)} ${what}`)
  return said.length === 0 ? '' : ` (${said.join(', ')})`
}

const percentiles = ({ p1, p50 }: NonNullable<Summary['fill']>) =>
  p1 === null || p50 === null ? '' : ` (p50 ${percent(p50)}, p1 ${percent(p1)})`

export function summaryText(summary: Summary): string {
  const { completed, failed, tokens, seconds, batches, fill, paddingWaste } = summary
  const rows: [string, string][] = [
    ['job', `${summary.job} of model ${summary.model} at ${summary.broker}`],
    ['items', `${count(completed)} completed, ${count(failed)} failed${failures(summary)}`],
    ['tokens', count(tokens)],
    [
      'time',
      `${duration(seconds)}: ${short(summary.itemsPerSecond)} items/s, ${short(summary.tokensPerSecond)} tokens/s`,
    ],
  ]
  if (batches !== null) {
    const parts = [count(batches)]
    if (fill !== null) parts.push(`fill ${percent(fill.mean)}${percentiles(fill)}`)
    if (paddingWaste !== null) parts.push(`padding waste ${percent(paddingWaste)}`)
    rows.push(['batches', parts.join(', ')])
  }
  if (summary.transport.length > 0) rows.push(['transport', summary.transport.join(', ')])
  if (summary.truncated > 0) rows.push(['truncated', `${count(summary.truncated)} items`])
  if (summary.duplicates > 0) rows.push(['known', `${count(summary.duplicates)} items before`])
  if (summary.retries > 0) {
    const waited = summary.waitedSeconds > 0 ? `, ${duration(summary.waitedSeconds)} for room` : ''
    rows.push(['retries', `${count(summary.retries)}${waited}`])
  }
  rows.push(['output', summary.output])
  return rows.map(([name, text]) => `${name.padEnd(10)} ${text}\n`).join('')
}
