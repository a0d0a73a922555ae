// One timer for many reasons to wake up: the earliest counts.

export class Alarm {
  #timer: NodeJS.Timeout | null = null
  #atMs = 0

  constructor(readonly ring: () => void) {}

  /** Rings so soon at the latest. */
  setIn(delayMs: number): void {
    const atMs = performance.now() + delayMs
    if (this.#timer !== null && this.#atMs <= atMs) return
    this.clear()
    this.#atMs = atMs
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.ring()
    }, delayMs)
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
