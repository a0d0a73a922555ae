// What is to happen at which time: a binary heap by time, then by the order of things at one time.

/** Before everything else at its time: the consumers that a scenario begins with. */
export const BEGIN = -1
/** At one time: completions, deaths, then what the scenario lists (interfaces.md, Simulate). */
export const COMPLETION = 0
export const DEATH = 1
export const LISTED = 2

export interface Entry {
  atNs: number
  readonly phase: number
  /** Among equals of one phase: place in the scenario, or the order in which it was planned. */
  readonly order: number
  readonly act: () => void
  /** Planned and then overtaken by events: it is skipped. */
  cancelled: boolean
}

export class Agenda {
  readonly #heap: Entry[] = []
  #planned = 0

  plan(atNs: number, phase: number, act: () => void, order = ++this.#planned): Entry {
    const entry = { atNs, phase, order, act, cancelled: false }
    this.add(entry)
    return entry
  }

  /** What is planned from now on comes after so many listed things of one time. */
  beginOrderAt(order: number): void {
    this.#planned = Math.max(this.#planned, order)
  }

  /** Puts an entry that was taken out back in, at its new time. */
  add(entry: Entry): void {
    const heap = this.#heap
    let place = heap.length
    heap.push(entry)
    while (place > 0) {
      const parent = (place - 1) >>> 1
      if (!isBefore(entry, heap[parent])) break
      heap[place] = heap[parent]
      place = parent
    }
    heap[place] = entry
  }

  /** Infinity when nothing is planned. */
  nextAtNs(): number {
    this.#skipCancelled()
    return this.#heap.length === 0 ? Number.POSITIVE_INFINITY : this.#heap[0].atNs
  }

  /** The first entry that is due, or null. */
  takeDue(nowNs: number): Entry | null {
    return this.nextAtNs() <= nowNs ? this.#take() : null
  }

  #skipCancelled(): void {
    while (this.#heap.length > 0 && this.#heap[0].cancelled) this.#take()
  }

  #take(): Entry {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()!
    if (first === last) return first
    let place = 0
    for (;;) {
      let child = place * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++
      if (!isBefore(heap[child], last)) break
      heap[place] = heap[child]
      place = child
    }
    heap[place] = last
    return first
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  if (a.atNs !== b.atNs) return a.atNs < b.atNs
  if (a.phase !== b.phase) return a.phase < b.phase
  return a.order < b.order
}
