// Queue, gate and cleanup over time, in a bounded number of buckets: when a run outgrows them, two
// become one and each is twice as wide.
import type { CoreCounts } from '@fabric/core'

const BUCKETS_MAX = 640
const FIRST_WIDTH_NS = 1000

export interface Sample {
  stagingTokens: number
  laneTokens: number
  /** Reclaimed, waiting for another try, or held until results are read. */
  returnedTokens: number
  leasedItems: number
  gateOpen: boolean
  /** Within this bucket, if only for an instant. */
  cleanup: boolean
  /** At its end: it goes on in the buckets after it. */
  inCleanup: boolean
}

export class Series {
  widthNs = FIRST_WIDTH_NS
  /** By bucket; undefined where nothing happened: the one before goes on. */
  samples: (Sample | undefined)[] = []

  #cleanupNews = false
  #inCleanup = false

  /** After each instant; counts are asked for once a bucket. */
  record(nowNs: number, counts: () => CoreCounts): void {
    while (nowNs >= this.widthNs * BUCKETS_MAX) this.#halve()
    const bucket = Math.floor(nowNs / this.widthNs)
    this.samples[bucket] ??= sampleOf(counts())
    const sample = this.samples[bucket]
    sample.cleanup ||= this.#cleanupNews || this.#inCleanup
    sample.inCleanup = this.#inCleanup
    this.#cleanupNews = false
  }

  /** Cleanup began or ended in the instant that is recorded next. */
  noteCleanup(isOn: boolean): void {
    this.#cleanupNews = true
    this.#inCleanup = isOn
  }

  /** Every bucket up to the end, gaps filled. */
  filled(endNs: number): Sample[] {
    const count = Math.min(BUCKETS_MAX, Math.floor(endNs / this.widthNs) + 1)
    let last: Sample = empty()
    return Array.from({ length: count }, (_, i) => {
      last = this.samples[i] ?? { ...last, cleanup: last.inCleanup }
      return last
    })
  }

  #halve(): void {
    this.widthNs *= 2
    const halved: (Sample | undefined)[] = []
    for (let i = 0; i < this.samples.length; i += 2) {
      const [first, second] = [this.samples[i], this.samples[i + 1]]
      const kept = second ?? first
      if (kept === undefined) continue
      const cleanup = first?.cleanup === true || second?.cleanup === true
      halved[i / 2] = { ...kept, cleanup }
    }
    this.samples = halved
  }
}

const empty = (): Sample => ({
  stagingTokens: 0,
  laneTokens: 0,
  returnedTokens: 0,
  leasedItems: 0,
  gateOpen: false,
  cleanup: false,
  inCleanup: false,
})

function sampleOf({ queue, gate, leased }: CoreCounts): Sample {
  return {
    stagingTokens: queue.staging.tokens,
    laneTokens: queue.lane.tokens,
    returnedTokens: queue.reclaimed.tokens + queue.retrying.tokens + queue.held.tokens,
    leasedItems: leased,
    gateOpen: gate.open,
    cleanup: false,
    inCleanup: false,
  }
}
