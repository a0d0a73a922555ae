// A rate over the last seconds: what is going on now, not the mean since the start.

const WINDOW_MS = 10_000

interface Sample {
  readonly atMs: number
  readonly items: number
  readonly tokens: number
}

export class RateWindow {
  #samples: Sample[] = []

  add(sample: Sample): void {
    this.#samples.push(sample)
    while (this.#samples.length > 2 && sample.atMs - this.#samples[1].atMs >= WINDOW_MS) {
      this.#samples.shift()
    }
  }

  /** Per second; 0 until there is something to measure. */
  get rates(): { items: number; tokens: number } {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)]
    if (first === undefined || last === undefined || last.atMs === first.atMs) {
      return { items: 0, tokens: 0 }
    }
    const seconds = (last.atMs - first.atMs) / 1000
    return {
      items: (last.items - first.items) / seconds,
      tokens: (last.tokens - first.tokens) / seconds,
    }
  }
}
