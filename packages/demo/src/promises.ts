// What the demo promises, figure by figure. A broken promise ends it non-zero.
import type { BrokerState } from '@fabric/broker'
import type { Packing } from './references.js'

export interface Figures {
  readonly state: BrokerState
  readonly sort: Packing
  readonly firstCome: Packing
  readonly items: number
  readonly results: ResultCounts
  readonly worstCosine: number
  /** A consumer was killed on the way: idle time and pages are those of the one that is left. */
  readonly killed: string | null
  /** 2 MiB pages free before the rings were made. */
  readonly hugePagesFree: number
}

export interface ResultCounts {
  readonly lines: number
  readonly distinctIds: number
  readonly completed: number
  readonly inInputOrder: boolean
}

export interface Promised {
  readonly what: string
  readonly kept: boolean
}

/** What holds under any rules of batching. */
export function settlementPromises(figures: Figures): readonly Promised[] {
  const { state, items, results } = figures
  return [
    {
      what: 'every item has exactly one result, in input order',
      kept:
        results.lines === items &&
        results.distinctIds === items &&
        results.completed === items &&
        results.inInputOrder,
    },
    { what: 'nothing is left', kept: itemsLeft(state) === 0 },
    {
      what: 'vectors equal the model run one text at a time: cosine >= 0.999',
      kept: figures.worstCosine >= 0.999,
    },
  ]
}

export function promises(figures: Figures): readonly Promised[] {
  const { state, sort } = figures
  const { normal } = state.batches.fill
  const waste = state.batches.paddingWaste ?? 1
  return [
    ...settlementPromises(figures),
    {
      what: 'fill of normal batches: p50, p90 and p99 >= 0.98',
      kept: [normal.p50, normal.p90, normal.p99].every((fill) => (fill ?? 0) >= 0.98),
    },
    { what: 'fill of normal batches: p1 >= 0.90', kept: (normal.p1 ?? 0) >= 0.9 },
    {
      what: 'no normal batch was closed by the item limit',
      kept: state.batches.normalClosedBy.item_limit === 0,
    },
    {
      what: 'padding waste at most 1 point above sorting everything first',
      kept: waste <= sort.waste + 0.01,
    },
    {
      what: "consumers' idle share during the input <= 5 %",
      kept: state.consumers.every((each) => (each.idleShareDuringInput ?? 1) <= 0.05),
    },
    {
      what: 'the rings stand on 2 MiB pages, as far as they are reserved',
      kept: state.consumers.every((each) => each.ring !== null) && pagesAsReserved(figures),
    },
  ]
}

export function itemsLeft(state: BrokerState): number {
  return state.items.waiting + state.items.leased
}

/** With room for all rings in the pool, every ring must have it. */
function pagesAsReserved({ state, hugePagesFree }: Figures): boolean {
  const rings = state.consumers.flatMap((each) => (each.ring === null ? [] : [each.ring]))
  const needed = rings.reduce((pages, ring) => pages + ring.capacityBytes / 2 ** 21, 0)
  return hugePagesFree < needed || rings.every((ring) => ring.pages === 'huge')
}
