// Reproducible chance: the same seed gives the same run.
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = (seed * 2654435761 + 1) >>> 0
  }

  /** 0 to below `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let value = this.#state
    value = Math.imul(value ^ (value >>> 15), value | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return Math.floor((((value ^ (value >>> 14)) >>> 0) / 2 ** 32) * end)
  }

  chance(share: number): boolean {
    return this.below(1_000_000) < share * 1_000_000
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]
  }
}
