// What is left in each segment of the log: blocks and their bytes, in memory as they will stand in the
// index after the transaction under way. A segment with nothing left is removed as a file; which one may
// go is for the writer to say, who knows what of the log the index does not know yet.

import { BlockRow } from './block-row.js'
import { decodeRow, encodeRow } from './counters.js'
import type { Table } from './environment.js'
import { segmentKey } from './layout.js'

export interface SegmentCounter {
  blocks: number
  bytes: number
}

export class Segments {
  readonly #counters = new Map<number, SegmentCounter>()
  readonly #dirty = new Set<number>()
  #mustRecount = false

  constructor(
    readonly segments: Table,
    readonly blocks: Table,
  ) {}

  load(): void {
    this.#counters.clear()
    this.#dirty.clear()
    this.#mustRecount = false
    for (const { key, value } of this.segments.getRange({})) {
      const numbers = decodeRow(value, 2)
      if (numbers === null) this.recountLater()
      else this.#counters.set(key.readUInt32BE(0), { blocks: numbers[0], bytes: numbers[1] })
    }
  }

  /** A row of a block could not be read, so where the block stood is not known. */
  recountLater(): void {
    this.#mustRecount = true
  }

  add(segment: number, blocks: number, bytes: number): void {
    const counter = this.#counters.get(segment) ?? { blocks: 0, bytes: 0 }
    counter.blocks += blocks
    counter.bytes += bytes
    this.#counters.set(segment, counter)
    this.#dirty.add(segment)
  }

  /** null: nothing is left in it. */
  left(segment: number): Readonly<SegmentCounter> | null {
    return this.#counters.get(segment) ?? null
  }

  /** Segments in which something is left. */
  numbers(): Iterable<number> {
    return this.#counters.keys()
  }

  get bytesLeft(): number {
    let bytes = 0
    for (const counter of this.#counters.values()) bytes += counter.bytes
    return bytes
  }

  /** Within the transaction, when all blocks stand as they will. */
  write(): void {
    if (this.#mustRecount) this.#recount()
    for (const segment of this.#dirty) {
      const counter = this.#counters.get(segment)
      if (counter !== undefined && counter.blocks > 0)
        this.segments.put(segmentKey(segment), encodeRow([counter.blocks, counter.bytes]))
      else {
        this.#counters.delete(segment)
        this.segments.remove(segmentKey(segment))
      }
    }
    this.#dirty.clear()
  }

  #recount(): void {
    for (const key of Array.from(this.segments.getKeys({}), (found) => Buffer.from(found)))
      this.#dirty.add(key.readUInt32BE(0))
    for (const segment of this.#counters.keys()) this.#dirty.add(segment)
    this.#counters.clear()
    for (const [segment, counter] of countSegments(this.blocks)) {
      this.#counters.set(segment, counter)
      this.#dirty.add(segment)
    }
    this.#mustRecount = false
  }
}

export const missingSegment = (segment: number): string =>
  `segment ${segment} of the log is missing or damaged: what is left of it is set aside when it is met, and what was accepted last may be lost; restore a copy of the folder to keep it`

/** By the rows of the blocks. */
export function countSegments(blocks: Table): Map<number, SegmentCounter> {
  const counters = new Map<number, SegmentCounter>()
  for (const { value } of blocks.getRange({})) {
    const place = BlockRow.decode(value)?.place
    if (place === undefined) continue
    const counter = counters.get(place.segment) ?? { blocks: 0, bytes: 0 }
    counter.blocks += 1
    counter.bytes += place.bytes
    counters.set(place.segment, counter)
  }
  return counters
}
