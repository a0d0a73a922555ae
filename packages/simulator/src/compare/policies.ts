// How others batch, in their plainest form. Each is asked when a consumer is free and gives it what
// is there: none of them waits for a fuller batch.
import type { Contract } from '@fabric/core'
import type { Fifo } from './fifo.js'

export interface PeerBatch {
  readonly size: number
  readonly longest: number
  readonly actualTokens: number
  readonly acceptedNsSum: number
}

/** Batches of one queue; it may keep items back that it has taken out (`held`). */
export interface Policy {
  readonly heldItems: number
  readonly heldTokens: number
  next(queue: Fifo, contract: Contract): PeerBatch | null
}

/** Windows that are sorted hold so many batches: Infinity's figure. */
const WINDOW_BATCHES = 8

export const padTo = (length: number, roundTo: number): number =>
  Math.ceil(length / roundTo) * roundTo

/** As many items as are safe whatever their lengths: what an operator sets as a fixed batch size. */
export function safeCount({ batchSize, tokens, inputLength, roundTo }: Contract): number {
  return Math.max(1, Math.min(batchSize, Math.floor(tokens / padTo(inputLength, roundTo))))
}

function takeFirst(queue: Fifo, size: number): PeerBatch {
  let longest = 0
  let actualTokens = 0
  let acceptedNsSum = 0
  for (let i = 0; i < size; i++) {
    longest = Math.max(longest, queue.lengthAt(i))
    actualTokens += queue.lengthAt(i)
    acceptedNsSum += queue.acceptedAt(i)
  }
  queue.drop(size)
  return { size, longest, actualTokens, acceptedNsSum }
}

/** First come, first served, until one more item would pass the padded budget. */
export class PaddedBudget implements Policy {
  readonly heldItems = 0
  readonly heldTokens = 0

  next(queue: Fifo, { batchSize, tokens, roundTo }: Contract): PeerBatch | null {
    if (queue.count === 0) return null
    const most = Math.min(batchSize, queue.count)
    let longest = queue.lengthAt(0)
    let size = 1
    while (size < most) {
      const next = Math.max(longest, queue.lengthAt(size))
      if ((size + 1) * padTo(next, roundTo) > tokens) break
      longest = next
      size++
    }
    return takeFirst(queue, size)
  }
}

/** First come, first served, a fixed number of items. */
export class FixedCount implements Policy {
  readonly heldItems = 0
  readonly heldTokens = 0

  next(queue: Fifo, contract: Contract): PeerBatch | null {
    if (queue.count === 0) return null
    return takeFirst(queue, Math.min(safeCount(contract), queue.count))
  }
}

interface Waiting {
  readonly length: number
  readonly acceptedNs: number
}

/** A window is taken, sorted longest first and packed under the budget, to its last item. */
export class SortedWindows implements Policy {
  heldItems = 0
  heldTokens = 0
  #window: Waiting[] = []
  #at = 0

  next(queue: Fifo, contract: Contract): PeerBatch | null {
    if (this.#at === this.#window.length) this.#fill(queue, WINDOW_BATCHES * safeCount(contract))
    if (this.#at === this.#window.length) return null
    const { batchSize, tokens, roundTo } = contract
    const longest = this.#window[this.#at].length
    const full = Math.floor(tokens / padTo(longest, roundTo))
    const left = this.#window.length - this.#at
    const size = Math.max(1, Math.min(batchSize, full, left))
    let actualTokens = 0
    let acceptedNsSum = 0
    for (const { length, acceptedNs } of this.#window.slice(this.#at, this.#at + size)) {
      actualTokens += length
      acceptedNsSum += acceptedNs
    }
    this.#at += size
    this.heldItems -= size
    this.heldTokens -= actualTokens
    return { size, longest, actualTokens, acceptedNsSum }
  }

  #fill(queue: Fifo, most: number): void {
    const count = Math.min(most, queue.count)
    this.#window = Array.from({ length: count }, (_, i) => ({
      length: queue.lengthAt(i),
      acceptedNs: queue.acceptedAt(i),
    }))
    this.#window.sort((a, b) => b.length - a.length)
    this.#at = 0
    this.heldItems = count
    this.heldTokens = this.#window.reduce((sum, { length }) => sum + length, 0)
    queue.drop(count)
  }
}
