// What the summary is made of, counted as the run goes; nothing is kept per item or per batch.
import type { ClosedBy, Contract, CoreCounts, GateReason, SettledStatus } from '@fabric/core'
import type { SimulatedBatch } from '../batch.js'
import type { SimulatedConsumer } from '../consumer.js'
import type { ModelTimes } from '../idle-time.js'
import type { Rules } from '../scenario/config.js'
import { Ratios } from './ratios.js'
import { Lengths, type Packed, sortReference } from './sort-reference.js'

const zero = <K extends string>(keys: readonly K[]): Record<K, number> =>
  Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>

export class Tally {
  accepted = 0
  ended = 0
  readonly settled = zero<SettledStatus>([
    'completed',
    'failed',
    'expired',
    'cancelled',
    'quarantined',
  ])
  readonly closedBy = zero<ClosedBy>([
    'token_limit',
    'item_limit',
    'byte_limit',
    'lane_empty',
    'alone',
  ])
  batches = 0
  normalBatches = 0
  normalItems = 0
  actualTokens = 0
  paddedTokens = 0
  switches = 0
  readonly fills = new Ratios()
  readonly normalFills = new Ratios()
  readonly lengths = new Lengths()
  /** By model: the registered contract with the most tokens. */
  readonly contracts = new Map<number, Contract>()
  gateHeldNs = 0
  gateReason: GateReason | null = null
  readonly cleanup = { entries: 0, ns: 0, batches: 0, items: 0 }
  lastSettledNs = 0
  /** From acceptance until taken, summed over deliveries. */
  waitNs = 0
  takenItems = 0
  readonly #models = new Map<number, ModelTimes>()

  constructor(private readonly rules: Rules) {}

  /** Everything that was accepted, sorted first and packed under the same contract. */
  sort(): Packed {
    return sortReference(this.lengths, this.contracts, this.rules)
  }

  times(model: number): ModelTimes {
    let times = this.#models.get(model)
    if (times === undefined) {
      times = { firstDispatchNs: -1, lastInputNs: -1 }
      this.#models.set(model, times)
    }
    return times
  }

  accept(model: number, length: number, now: number): void {
    this.accepted++
    this.lengths.add(model, length)
    this.times(model).lastInputNs = now
  }

  register(contract: Contract): void {
    const known = this.contracts.get(contract.model)
    if (known === undefined || contract.tokens > known.tokens) {
      this.contracts.set(contract.model, contract)
    }
  }

  dispatch(batch: SimulatedBatch, consumer: SimulatedConsumer, now: number): void {
    const times = this.times(batch.model)
    if (times.firstDispatchNs < 0) times.firstDispatchNs = now
    this.batches++
    this.closedBy[batch.closedBy]++
    this.actualTokens += batch.actualTokens
    this.paddedTokens += paddedTokensOf(batch, consumer)
    this.fills.add(batch.fill)
    if (batch.normal) {
      this.normalBatches++
      this.normalItems += batch.size
      this.normalFills.add(batch.fill)
    }
    const { lastPaddedLength } = consumer
    if (lastPaddedLength > 0 && lastPaddedLength !== batch.paddedLength) this.switches++
    consumer.lastPaddedLength = batch.paddedLength
    consumer.batches++
  }

  take(batch: SimulatedBatch, now: number): void {
    this.takenItems += batch.size
    this.waitNs += batch.size * now - batch.acceptedAtNsSum
  }

  settle(statuses: readonly SettledStatus[], now: number): void {
    for (const status of statuses) this.settled[status]++
    this.ended += statuses.length
    this.lastSettledNs = now
  }

  openGate(reason: GateReason, heldNs: number): void {
    this.gateReason = reason
    this.gateHeldNs += heldNs
  }

  /** A life of the broker has ended. */
  addCleanup({ entries, ns, batches, items }: CoreCounts['cleanup']): void {
    this.cleanup.entries += entries
    this.cleanup.ns += ns
    this.cleanup.batches += batches
    this.cleanup.items += items
  }
}

/** What the runtime computes: a ragged batch has no padding. */
export function paddedTokensOf(batch: SimulatedBatch, consumer: SimulatedConsumer): number {
  return consumer.contract.layout === 'ragged'
    ? batch.actualTokens
    : batch.size * batch.paddedLength
}
