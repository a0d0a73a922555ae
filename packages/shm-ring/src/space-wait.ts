/** Waiting for space in a full ring: one callback, and claims that wait their turn. */
import type { NativeRingWriter } from './native.js'

/** As often as a ring is looked at whose consumer's wake-ups are noise. */
const SPACE_POLL_MS = 10

/** What the addon answers to a wait for space; the same numbers stand in writer_handle.cc. */
// 0: armed, the callback comes from the loop
const MOVED = 1
const USE_TIMER = 2

export class SpaceWait {
  readonly #native: NativeRingWriter
  #timer: NodeJS.Timeout | undefined
  #now: NodeJS.Immediate | undefined
  #callback: (() => void) | null = null
  /** In the order in which they asked: a small claim does not overtake a large one for ever. */
  readonly #queue: Array<() => boolean> = []

  constructor(native: NativeRingWriter) {
    this.#native = native
  }

  /** Calls back once when space may have come. A second call replaces the first. */
  once(callback: () => void): void {
    this.#callback = callback
    this.#arm()
  }

  /** Whether others wait for space before one who asks now. */
  get queued(): boolean {
    return this.#queue.length > 0
  }

  /** Tries again whenever space may have come, until it returns true. It must not throw. */
  enqueue(attempt: () => boolean): void {
    this.#queue.push(attempt)
    if (this.#queue.length === 1 && this.#callback === null) this.#arm()
  }

  /** Its turn is over without success. */
  leave(attempt: () => boolean): void {
    const index = this.#queue.indexOf(attempt)
    if (index < 0) return
    this.#queue.splice(index, 1)
    // The one behind it may need less.
    if (index === 0) this.#serve()
    if (this.#queue.length === 0 && this.#callback === null) this.#disarm()
  }

  /** Whoever still waits is told: the ring is closed, and its next try says so. */
  close(): void {
    this.#disarm()
    this.#callback = null
    for (const attempt of this.#queue.splice(0)) attempt()
  }

  #arm(): void {
    this.#disarm()
    const armed = this.#native.armSpace((wake) => {
      if (wake === USE_TIMER) this.#poll()
      else this.#moved()
    })
    if (armed === USE_TIMER) this.#poll()
    if (armed === MOVED) this.#now = setImmediate(() => this.#moved())
  }

  #poll(): void {
    this.#timer = setInterval(() => {
      if (!this.#native.spaceMoved()) return
      this.#disarm()
      this.#moved()
    }, SPACE_POLL_MS)
  }

  #disarm(): void {
    clearInterval(this.#timer)
    clearImmediate(this.#now)
    this.#native.disarmSpace()
  }

  #serve(): void {
    while (this.#queue.length > 0 && this.#queue[0]!()) this.#queue.shift()
    if (this.#queue.length > 0) this.#arm()
  }

  #moved(): void {
    const callback = this.#callback
    this.#callback = null
    // Before the callback, which may throw, wait anew or close the ring.
    this.#serve()
    callback?.()
  }
}
