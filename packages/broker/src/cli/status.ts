// `fabric-broker status`: the state of a running broker as a readable table.
import type { BrokerState, ConsumerState, DiskState } from '../state.js'
import { fetchState, inBytes, table } from './ask.js'

export async function status(flags: { broker: string; json?: boolean }): Promise<void> {
  const state = await fetchState(flags.broker)
  process.stdout.write(
    flags.json === true ? `${JSON.stringify(state, null, 2)}\n` : renderState(state),
  )
}

const NUMBERS = new Intl.NumberFormat('en-US')
const number = (value: number) => NUMBERS.format(value)
const percent = (share: number | null) => (share === null ? '-' : `${(100 * share).toFixed(1)} %`)
const fill = (value: number | null) => (value === null ? '-' : value.toFixed(3))

export function renderState(state: BrokerState): string {
  const { gate, items, batches, cleanup, assembly } = state
  const { normal } = batches.fill
  const lines = [
    `broker    ${state.version}, up ${Math.round(state.uptimeSeconds)} s, ${storageInWords(state.storage)}${state.draining ? ', DRAINING' : ''}`,
    `gate      ${gateInWords(gate)}`,
    `queue     ${number(items.waiting)} items, ${number(items.waitingTokens)} tokens, ${state.lanesActive} lanes, oldest ${state.oldestItemSeconds.toFixed(1)} s`,
    `items     ${number(items.accepted)} accepted, ${number(items.settled.completed)} completed, ${number(items.settled.failed)} failed, ${number(items.leased)} leased, ${number(items.reclaimed)} reclaimed`,
    `batches   ${number(batches.count)}, normal fill p1 ${fill(normal.p1)} p50 ${fill(normal.p50)}, padding waste ${percent(batches.paddingWaste)}`,
    `assembly  p50 ${assembly.p50Us?.toFixed(1) ?? '-'} us, p99 ${assembly.p99Us?.toFixed(1) ?? '-'} us`,
    `cleanup   ${cleanup.models.length > 0 ? `of model ${cleanup.models.join(', ')}` : 'off'}, ${cleanup.entries} entries, ${number(cleanup.batches)} batches`,
    '',
    ...consumerTable(state.consumers),
  ]
  for (const { id, waiting, reason } of state.stalledJobs)
    lines.push(`job ${id} is held with ${number(waiting)} items: ${reason}`)
  for (const { model, items: waiting } of state.unserved)
    lines.push(`no consumer serves model ${model}: ${number(waiting)} items wait`)
  return `${lines.join('\n')}\n`
}

function storageInWords(storage: BrokerState['storage']): string {
  if (storage.mode === 'disk')
    return `disk (durable) in ${storage.dataDir}, ${fileInWords(storage, 'ACCEPTS NOTHING')}`
  if (storage.spill === null) return 'memory (not durable)'
  const { spillDir } = storage.spill
  return `memory (not durable), spill in ${spillDir}, ${fileInWords(storage.spill, 'SPILLS NOTHING')}`
}

function fileInWords({ usedBytes, fileBytes, health }: DiskState, refusal: string): string {
  const words = `${inBytes(usedBytes)} of ${inBytes(fileBytes)}`
  return health.state === 'ok' ? words : `${words}, ${refusal}: ${health.message}`
}

function gateInWords({ open, reason, progress, thresholdTokens }: BrokerState['gate']): string {
  if (open) return `open (${reason})`
  if (thresholdTokens === 0) return 'closed until a consumer comes'
  return `closed, ${percent(progress)} of ${number(thresholdTokens)} tokens`
}

function consumerTable(consumers: readonly ConsumerState[]): string[] {
  if (consumers.length === 0) return ['no consumer is connected']
  const rows = consumers.map((one) => [
    one.name,
    one.overdue ? 'overdue' : one.state,
    String(one.model),
    `${one.contract.batchSize} x ${one.contract.inputLength}, ${one.contract.tokens} tokens`,
    transport(one),
    `${one.channelBatches}+${one.inFlight}`,
    number(one.batches),
    percent(one.idleShareDuringInput),
    one.transportReason,
  ])
  const head = [
    'consumer',
    'state',
    'model',
    'contract',
    'transport',
    'held',
    'batches',
    'idle',
    'why',
  ]
  return table([head, ...rows])
}

function transport({ transport: name, ring }: ConsumerState): string {
  if (ring === null) return name
  return `${name}, ${inBytes(ring.capacityBytes)}, ${inBytes(ring.pageSizeBytes)} pages`
}
