// The last line (interfaces.md, Simulate): percentiles by nearest rank, ratios to 4 decimals.
import type { ClosedBy, GateReason, SettledStatus } from '@fabric/core'
import type { SimulatedConsumer } from '../consumer.js'
import { type Percentiles, toRatio } from './ratios.js'
import type { Tally } from './tally.js'

export interface ConsumerSummary {
  readonly busyUs: number
  readonly idleUs: number
  readonly idleShare: number
  readonly batches: number
}

export interface Summary {
  readonly type: 'summary'
  readonly items: number
  readonly settled: Readonly<Record<SettledStatus, number>>
  readonly left: number
  readonly batches: number
  readonly normal: { readonly batches: number; readonly items: number }
  readonly fill: { readonly all: Percentiles; readonly normal: Percentiles }
  readonly waste: number
  readonly sort: { readonly batches: number; readonly waste: number; readonly fill: Percentiles }
  readonly closedBy: Readonly<Record<ClosedBy, number>>
  readonly switches: number
  readonly gate: { readonly heldUs: number; readonly reason: GateReason | null }
  readonly cleanup: {
    readonly entries: number
    readonly us: number
    readonly batches: number
    readonly items: number
  }
  readonly consumers: Readonly<Record<string, ConsumerSummary>>
  readonly makespanUs: number
}

const toUs = (ns: number): number => Math.floor(ns / 1000)
export const wasteOf = (actual: number, padded: number): number =>
  padded === 0 ? 0 : toRatio(1 - actual / padded)

export function summaryOf(
  tally: Tally,
  consumers: ReadonlyMap<string, SimulatedConsumer>,
): Summary {
  const sort = tally.sort()
  const { cleanup } = tally
  return {
    type: 'summary',
    items: tally.accepted,
    settled: { ...tally.settled },
    left: tally.accepted - tally.ended,
    batches: tally.batches,
    normal: { batches: tally.normalBatches, items: tally.normalItems },
    fill: { all: tally.fills.percentiles(), normal: tally.normalFills.percentiles() },
    waste: wasteOf(tally.actualTokens, tally.paddedTokens),
    sort: {
      batches: sort.batches,
      waste: wasteOf(sort.actualTokens, sort.paddedTokens),
      fill: sort.fills.percentiles(),
    },
    closedBy: { ...tally.closedBy },
    switches: tally.switches,
    gate: { heldUs: toUs(tally.gateHeldNs), reason: tally.gateReason },
    cleanup: {
      entries: cleanup.entries,
      us: toUs(cleanup.ns),
      batches: cleanup.batches,
      items: cleanup.items,
    },
    consumers: Object.fromEntries(
      [...consumers].map(([name, one]) => [name, consumerSummary(one, tally.lastSettledNs)]),
    ),
    makespanUs: toUs(tally.lastSettledNs),
  }
}

function consumerSummary(consumer: SimulatedConsumer, end: number): ConsumerSummary {
  const { idleNs, idleShare } = consumer.time.totals(end)
  return {
    busyUs: toUs(consumer.time.busyNs),
    idleUs: toUs(idleNs),
    idleShare: toRatio(idleShare),
    batches: consumer.batches,
  }
}
