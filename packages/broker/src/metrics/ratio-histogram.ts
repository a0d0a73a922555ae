// Ratios from 0 to 1 to four decimals, counted exactly: percentiles by nearest rank.

const STEPS = 10_000

export class RatioHistogram {
  readonly #counts = new Float64Array(STEPS + 1)
  count = 0
  sum = 0

  /** A ratio above 1 (a batch of one item that is over the budget, S5) counts as 1. */
  record(ratio: number): void {
    const step = Math.round(Math.min(Math.max(ratio, 0), 1) * STEPS)
    this.#counts[step] += 1
    this.count += 1
    this.sum += ratio
  }

  /** @param percent 0 to 100. @returns null while nothing is counted. */
  percentile(percent: number): number | null {
    if (this.count === 0) return null
    const rank = Math.max(1, Math.ceil((percent / 100) * this.count))
    let seen = 0
    for (let step = 0; step <= STEPS; step++) {
      seen += this.#counts[step]
      if (seen >= rank) return step / STEPS
    }
    return 1
  }

  get mean(): number | null {
    return this.count === 0 ? null : this.sum / this.count
  }

  /** How many are at most `ratio`. */
  countUpTo(ratio: number): number {
    let seen = 0
    for (let step = 0; step <= Math.min(STEPS, Math.round(ratio * STEPS)); step++)
      seen += this.#counts[step]
    return seen
  }
}
