// A histogram with fixed upper bounds, as Prometheus has them; recording is a short search.

export class BucketHistogram {
  readonly counts: Float64Array
  count = 0
  sum = 0

  /** @param bounds growing; what is above the last counts in none. */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length)
  }

  record(value: number): void {
    this.count += 1
    this.sum += value
    let low = 0
    let high = this.bounds.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (value <= this.bounds[middle]) high = middle
      else low = middle + 1
    }
    if (low < this.bounds.length) this.counts[low] += 1
  }
}
