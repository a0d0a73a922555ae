// For how long a job knows its ids (S36): while an item waits or is leased, and resultsTtl after it
// ended.
//
// The ids stand in two generations. A generation is dropped whole, once all of its items have ended
// and resultsTtl has passed since the last of them did: nothing is kept per item to forget it by, and
// the default job, which never ends, does not grow for ever.

import type { IdBlocks } from './id-blocks.js'
import { ID_UNKNOWN, type IdAnswer, IdIndex } from './id-index.js'

class Generation {
  readonly index: IdIndex
  unsettled = 0
  lastSettledAt = 0

  constructor(blocks: IdBlocks) {
    this.index = new IdIndex(blocks)
  }
}

export class IdMemory {
  private young: Generation
  private old: Generation | null = null
  /** Items with a greater sequence number belong to the young generation. */
  private lastOldSequence = 0

  constructor(private readonly blocks: IdBlocks) {
    this.young = new Generation(blocks)
  }

  /** Gives all memory up: the job is gone. */
  release(): void {
    this.young.index.release()
    this.old?.index.release()
  }

  get size(): number {
    return this.young.index.size + (this.old?.index.size ?? 0)
  }

  lookup(high: number, low: number, body: number): IdAnswer {
    const answer = this.young.index.lookup(high, low, body)
    if (answer !== ID_UNKNOWN || this.old === null) return answer
    return this.old.index.lookup(high, low, body)
  }

  /** Only reads what a look-up will read. */
  peek(high: number, low: number): number {
    const young = this.young.index.peek(high, low)
    return this.old === null ? young : young ^ this.old.index.peek(high, low)
  }

  accept(high: number, low: number, body: number): void {
    this.young.index.insert(high, low, body)
    this.young.unsettled++
  }

  /** The id of an item that was replayed: known or not, it is known for as long as a new one. */
  acceptAgain(high: number, low: number, body: number): void {
    const { index } = this.young
    if (index.lookup(high, low, body) === ID_UNKNOWN) index.insert(high, low, body)
    this.young.unsettled++
  }

  settle(sequence: number, now: number): void {
    const isOld = this.old !== null && sequence <= this.lastOldSequence
    const generation = isOld ? this.old! : this.young
    generation.unsettled--
    generation.lastSettledAt = now
  }

  /**
   * Drops what may be forgotten and starts a new generation where there is none to wait for. Answers
   * the time at which to be called again, or -1 when there is nothing to forget.
   */
  age(now: number, ttlNs: number, lastSequence: number): number {
    if (this.old !== null && this.old.unsettled === 0 && now >= this.old.lastSettledAt + ttlNs) {
      this.old.index.release()
      this.old = null
    }
    if (this.old === null && this.young.index.size > 0) {
      this.old = this.young
      this.young = new Generation(this.blocks)
      this.lastOldSequence = lastSequence
    }
    return this.old === null ? -1 : now + ttlNs
  }
}
