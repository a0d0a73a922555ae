// One workload under several rules, side by side: what others do, the sorted set, and ours.
import type { SimulatedBatch } from '../batch.js'
import type { SimulatedConsumer } from '../consumer.js'
import { type Percentiles, toRatio } from '../report/ratios.js'
import { type Summary, wasteOf } from '../report/summary.js'
import { paddedTokensOf } from '../report/tally.js'
import type { Scenario } from '../scenario/read.js'
import type { Observer } from '../shell.js'
import { Simulation } from '../simulation.js'
import { type Figures, FigureTally } from './figures.js'
import { Peer } from './peer.js'
import { FixedCount, PaddedBudget, type Policy, SortedWindows } from './policies.js'
import { withoutTrouble } from './workload.js'

export interface Comparison {
  readonly type: 'compare'
  /** What of the scenario was left out, since the others know nothing of it. */
  readonly leftOut: readonly string[]
  readonly rules: readonly Figures[]
  readonly sort: { readonly batches: number; readonly waste: number; readonly fill: Percentiles }
  readonly ours: {
    /** Share of the items that left in normal batches until the input ended. */
    readonly normalShare: number
    /** Normal batches that the item limit closed. */
    readonly normalItemLimit: number
    readonly summary: Summary
  }
}

const PEERS: readonly (readonly [string, () => Policy])[] = [
  ['first-come padded budget', () => new PaddedBudget()],
  ['first-come fixed count', () => new FixedCount()],
  ['sorted windows (8 x batch)', () => new SortedWindows()],
]
export const OURS = 'ours'

/** `pause` is awaited now and then: a long comparison gives way to what else the process does. */
export async function compare(
  full: Scenario,
  pause: () => Promise<void> = async () => {},
): Promise<Comparison> {
  const { scenario, leftOut } = withoutTrouble(full)
  const registered = scenario.events.filter(({ register }) => register !== undefined).length
  const consumers = scenario.consumers.length + registered
  const tail = consumers * (scenario.rules.channelDepth + 1)
  const rules: Figures[] = []
  for (const [name, makePolicy] of PEERS) {
    const peer = new Peer(name, scenario, makePolicy, tail)
    await runAll(peer, pause)
    rules.push(peer.figures())
  }
  const watch = new OursWatch(tail)
  const simulation = new Simulation(scenario, { observer: watch })
  watch.simulation = simulation
  await runAll(simulation, pause)
  const summary = simulation.summary()
  const sort = simulation.tally.sort()
  rules.push(watch.figures(simulation, summary))
  return {
    type: 'compare',
    leftOut,
    rules,
    sort: {
      batches: sort.batches,
      waste: wasteOf(sort.actualTokens, sort.paddedTokens),
      fill: sort.fills.percentiles(),
    },
    ours: { ...watch.shares(), summary },
  }
}

const INSTANTS_PER_PAUSE = 10_000

async function runAll(run: { advance(): boolean }, pause: () => Promise<void>): Promise<void> {
  for (let instant = 1; run.advance(); instant++) {
    if (instant % INSTANTS_PER_PAUSE === 0) await pause()
  }
}

class OursWatch implements Observer {
  simulation: Simulation | null = null
  readonly #tally: FigureTally
  /** Until the input ended, as far as that is known: what left since the last input is kept apart. */
  #inputNs = -1
  readonly #until = { items: 0, normal: 0 }
  readonly #since = { items: 0, normal: 0 }
  #normalItemLimit = 0

  constructor(tail: number) {
    this.#tally = new FigureTally(tail)
  }

  dispatched(batch: SimulatedBatch, consumer: SimulatedConsumer): void {
    const { fill, actualTokens, size, normal, closedBy, model } = batch
    this.#tally.batch(fill, actualTokens, paddedTokensOf(batch, consumer))
    if (normal && closedBy === 'item_limit') this.#normalItemLimit++
    const { lastInputNs } = this.simulation!.tally.times(model)
    if (lastInputNs > this.#inputNs) {
      this.#until.items += this.#since.items
      this.#until.normal += this.#since.normal
      this.#since.items = 0
      this.#since.normal = 0
      this.#inputNs = lastInputNs
    }
    this.#since.items += size
    if (normal) this.#since.normal += size
  }

  worked(): void {}
  instant(): void {}

  shares(): { normalShare: number; normalItemLimit: number } {
    // All input at once: what left since is all there is.
    const { items, normal } = this.#until.items > 0 ? this.#until : this.#since
    return {
      normalShare: items === 0 ? 0 : toRatio(normal / items),
      normalItemLimit: this.#normalItemLimit,
    }
  }

  figures({ tally, idleTimes }: Simulation, summary: Summary): Figures {
    const figures = this.#tally
    figures.items = tally.accepted
    figures.ended = tally.ended
    figures.lastEndNs = tally.lastSettledNs
    figures.switches = summary.switches
    figures.waitNs = tally.waitNs
    figures.takenItems = tally.takenItems
    return figures.figures(OURS, idleTimes())
  }
}
