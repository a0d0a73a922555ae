// What one rule did with the workload: a row of the comparison.
import type { IdleTime } from '../idle-time.js'
import { type Percentiles, Ratios, toRatio } from '../report/ratios.js'
import { wasteOf } from '../report/summary.js'

export interface Figures {
  readonly rule: string
  readonly items: number
  readonly left: number
  readonly batches: number
  /** `steady`: all but the last consumers x (channelDepth + 1) batches, as the design measures it. */
  readonly fill: { readonly all: Percentiles; readonly steady: Percentiles }
  readonly waste: number
  /** Mean over consumers, of the time from the first dispatch to the end of input. */
  readonly idleShare: number
  readonly switches: number
  readonly makespanUs: number
  /** From acceptance until a consumer takes it. */
  readonly meanWaitUs: number
}

/** Counted batch by batch; the last few are kept apart from `steady`. */
export class FigureTally {
  items = 0
  ended = 0
  batches = 0
  waitNs = 0
  takenItems = 0
  lastEndNs = 0
  switches = 0
  actualTokens = 0
  paddedTokens = 0
  readonly #all = new Ratios()
  readonly #steady = new Ratios()
  readonly #last: number[] = []

  /** `tail`: how many of the last batches are no part of `steady`. */
  constructor(private readonly tail: number) {}

  batch(fill: number, actualTokens: number, paddedTokens: number): void {
    this.batches++
    this.actualTokens += actualTokens
    this.paddedTokens += paddedTokens
    this.#all.add(fill)
    this.#last.push(fill)
    if (this.#last.length > this.tail) this.#steady.add(this.#last.shift()!)
  }

  figures(rule: string, times: readonly IdleTime[]): Figures {
    const shares = times.map((time) => time.totals(this.lastEndNs).idleShare)
    const mean = shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length)
    return {
      rule,
      items: this.items,
      left: this.items - this.ended,
      batches: this.batches,
      fill: { all: this.#all.percentiles(), steady: this.#steady.percentiles() },
      waste: wasteOf(this.actualTokens, this.paddedTokens),
      idleShare: toRatio(mean),
      switches: this.switches,
      makespanUs: Math.floor(this.lastEndNs / 1000),
      meanWaitUs: this.takenItems === 0 ? 0 : Math.round(this.waitNs / this.takenItems / 1000),
    }
  }
}
