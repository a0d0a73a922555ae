// The one timer of the core: it may fire early, but never late.
import { type Clock, NS_PER_MS } from './clock.js'

/** The longest wait that setTimeout takes. */
const TIMER_MS_MAX = 2 ** 31 - 1

export class CoreTimer {
  #timer: NodeJS.Timeout | null = null
  #at = Number.POSITIVE_INFINITY

  constructor(
    readonly clock: Clock,
    readonly onTime: () => void,
  ) {}

  /** A later time than the one it is set for changes nothing: what fires early looks again. */
  set(at: number): void {
    if (at >= this.#at) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#at = at
    const delayMs = Math.ceil((at - this.clock.now()) / NS_PER_MS)
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(0, delayMs), TIMER_MS_MAX))
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #fire(): void {
    this.#timer = null
    this.#at = Number.POSITIVE_INFINITY
    this.onTime()
  }
}
