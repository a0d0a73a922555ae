// Percentiles of ratios, exact and in bounded memory: a fill is a whole number of tokens over a
// budget, so there are few different ones, however many batches there are.

export interface Percentiles {
  readonly p1: number
  readonly p10: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly mean: number
}

/** Four decimals: what the summary prints. */
export const toRatio = (value: number): number => Math.round(value * 10_000) / 10_000

export class Ratios {
  count = 0
  readonly #counts = new Map<number, number>()

  add(value: number, times = 1): void {
    this.count += times
    this.#counts.set(value, (this.#counts.get(value) ?? 0) + times)
  }

  /** Nearest rank; 0 when there are none. */
  percentiles(): Percentiles {
    const sorted = [...this.#counts].sort(([a], [b]) => a - b)
    const rank = (share: number) => {
      let left = Math.max(1, Math.ceil(share * this.count))
      for (const [value, times] of sorted) {
        left -= times
        if (left <= 0) return toRatio(value)
      }
      return 0
    }
    const total = sorted.reduce((sum, [value, times]) => sum + value * times, 0)
    return {
      p1: rank(0.01),
      p10: rank(0.1),
      p50: rank(0.5),
      p90: rank(0.9),
      p99: rank(0.99),
      mean: this.count === 0 ? 0 : toRatio(total / this.count),
    }
  }

  /** Value and how often, ascending. */
  entries(): readonly (readonly [number, number])[] {
    return [...this.#counts].sort(([a], [b]) => a - b)
  }
}
