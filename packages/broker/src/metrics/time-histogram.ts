// Durations from 1 us to 100 s: exact percentiles from an HDR histogram, and Prometheus buckets.
import { build, type Histogram } from 'hdr-histogram-js'
import { BucketHistogram } from './buckets.js'

const LONGEST_NS = 100e9
const SECONDS = [
  1e-6, 2e-6, 4e-6, 8e-6, 16e-6, 32e-6, 64e-6, 128e-6, 256e-6, 512e-6, 1e-3, 2e-3, 4e-3, 8e-3,
  16e-3, 64e-3, 256e-3, 1,
]

export class TimeHistogram {
  readonly buckets = new BucketHistogram(SECONDS)
  readonly #ns: Histogram = build({
    lowestDiscernibleValue: 100,
    highestTrackableValue: LONGEST_NS,
    numberOfSignificantValueDigits: 3,
  })
  #longestNs = 0

  record(ns: number): void {
    this.buckets.record(ns / 1e9)
    this.#ns.recordValue(Math.min(Math.max(1, ns), LONGEST_NS))
    if (ns > this.#longestNs) this.#longestNs = ns
  }

  get count(): number {
    return this.buckets.count
  }

  /** Microseconds; null while nothing is counted. */
  percentileUs(percent: number): number | null {
    return this.count === 0 ? null : this.#ns.getValueAtPercentile(percent) / 1000
  }

  get meanUs(): number | null {
    return this.count === 0 ? null : (this.buckets.sum / this.count) * 1e6
  }

  get longestUs(): number | null {
    return this.count === 0 ? null : this.#longestNs / 1000
  }
}
