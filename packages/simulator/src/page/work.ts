// What one consumer worked on, as stretches of time: each batch its own while there is room, then
// neighbours in ever wider cells, with the shape that took most of the time.

const STRETCHES_MAX = 900
/** Of the last batches each is shown by itself, in the picture of the tail. */
const RECENT_MAX = 80

export interface Stretch {
  from: number
  to: number
  busyNs: number
  /** Of the batch, or of the longest one merged here. */
  paddedLength: number
  longestNs: number
  batches: number
  /** Some of it was broken off by a death or a stop. */
  broken: boolean
}

export class Work {
  stretches: Stretch[] = []
  /** The last ones, never merged. */
  readonly recent: Stretch[] = []
  /** Stretches of one cell are one; 0: none are merged. */
  #cellNs = 0

  add(from: number, to: number, paddedLength: number, done: boolean): void {
    const ns = to - from
    const next = { from, to, busyNs: ns, paddedLength, longestNs: ns, batches: 1, broken: !done }
    this.recent.push({ ...next })
    if (this.recent.length > RECENT_MAX) this.recent.shift()
    this.#push(this.stretches, next)
    while (this.stretches.length > STRETCHES_MAX) this.#widen()
  }

  #push(stretches: Stretch[], next: Stretch): void {
    const last = stretches[stretches.length - 1]
    const cell = this.#cellNs
    if (
      cell > 0 &&
      last !== undefined &&
      Math.floor(last.from / cell) === Math.floor(next.from / cell)
    ) {
      merge(last, next)
    } else stretches.push(next)
  }

  #widen(): void {
    const span = this.stretches[this.stretches.length - 1].to
    this.#cellNs = this.#cellNs === 0 ? (span / STRETCHES_MAX) * 2 : this.#cellNs * 2
    const merged: Stretch[] = []
    for (const stretch of this.stretches) this.#push(merged, stretch)
    this.stretches = merged
  }
}

function merge(into: Stretch, next: Stretch): void {
  into.to = next.to
  into.busyNs += next.busyNs
  into.batches += next.batches
  into.broken ||= next.broken
  if (next.longestNs <= into.longestNs) return
  into.longestNs = next.longestNs
  into.paddedLength = next.paddedLength
}
