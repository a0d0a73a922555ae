// `fabric status`: what the broker holds, who serves it, and how its jobs stand.
import type { JobInfo } from '@fabric/protocol'
import { FabricClient } from '../client.js'
import { count, duration, percent, table } from './format.js'
import { type BrokerOptions, EXIT } from './options.js'
import { StateView } from './state-view.js'

/** The newest; an operator with more asks the HTTP interface. */
const JOBS_SHOWN_MAX = 20

export async function statusCommand(options: BrokerOptions): Promise<number> {
  const client = new FabricClient(options)
  const [state, jobs] = await Promise.all([client.state(), client.jobs()])
  process.stdout.write(statusText(client.broker, new StateView(state), jobs))
  return EXIT.completed
}

export function statusText(broker: string, state: StateView, jobs: readonly JobInfo[]): string {
  const sections = [overview(broker, state), consumers(state), jobTable(jobs)]
  return `${sections.join('\n\n')}\n`
}

function overview(broker: string, state: StateView): string {
  const number = (path: string) => count(state.number(path))
  const gate = state.gateOpen
    ? `open (${state.text('gate.reason')})`
    : `closed, ${percent(state.number('gate.progress'))} of the release threshold gathered`
  const rows = [
    ['broker', `${broker}${state.draining ? ', draining' : ''}`],
    ['up', duration(state.number('uptimeSeconds'))],
    ['gate', gate],
    ['waiting', `${number('items.waiting')} items, ${number('items.waitingTokens')} tokens`],
    ['leased', `${number('items.leased')} items`],
    ['batches', batches(state)],
    ...(state.diskTrouble === null ? [] : [['disk', state.diskTrouble]]),
    ...state.unserved.map(({ model, items }) => [
      'no consumer',
      `for model ${model}: ${count(items)} items wait`,
    ]),
    ...state.stalled.map(({ id, waiting, reason }) => [
      'stalled',
      `job ${id}, ${count(waiting)} items: ${reason}`,
    ]),
  ]
  return table(rows)
}

function batches(state: StateView): string {
  const parts = [count(state.number('batches.count'))]
  const { mean, p50 } = state.fill
  if (mean !== null) parts.push(`fill ${percent(mean)}`)
  if (p50 !== null) parts.push(`p50 ${percent(p50)}`)
  if (state.number('batches.paddedTokens') > 0) {
    parts.push(`padding waste ${percent(state.number('batches.paddingWaste'))}`)
  }
  return parts.join(', ')
}

function consumers({ consumers }: StateView): string {
  if (consumers.length === 0) return 'no consumer is registered'
  const head = ['consumer', 'state', 'model', 'batch size', 'tokens', 'input', 'transport']
  const rows = consumers.map((each) => [
    each.name,
    each.state,
    each.model,
    each.batchSize,
    each.tokens,
    each.inputLength,
    each.transport,
    each.channelBatches + each.inFlight,
    each.batches,
    each.items,
  ])
  return table([[...head, 'held', 'batches', 'items'], ...rows])
}

function jobTable(jobs: readonly JobInfo[]): string {
  const used = jobs.filter(({ accepted, state }) => accepted > 0 || state !== 'open')
  if (used.length === 0) return 'no job has items'
  const shown = used.slice(-JOBS_SHOWN_MAX)
  const rows = shown.map(({ id, model, state, paused, accepted, waiting, leased, settled }) => [
    id,
    model === null ? '-' : model,
    paused ? `${state}, paused` : state,
    accepted,
    waiting,
    leased,
    settled.completed,
    settled.failed + settled.expired + settled.cancelled + settled.quarantined,
  ])
  const head = ['job', 'model', 'state', 'accepted', 'waiting', 'leased', 'completed', 'failed']
  const more = used.length - shown.length
  return `${table([head, ...rows])}${more > 0 ? `\nand ${count(more)} older jobs` : ''}`
}
