// The item table: two rows per unsettled item, of 40 and 16 bytes, and its bytes in the arena.
//
// Rows (slots) are used anew, lowest chunk first, so that the table shrinks after a burst; the
// sequence number of an item is never used again and tells one tenant of a slot from the next (S26).

import { Arena, SEGMENT_BYTES } from './arena.js'
import {
  CHUNK_ROWS,
  CHUNK_SHIFT,
  Float64Column,
  Int32Column,
  ROW_MASK,
  Rows,
  SparseColumn,
  Uint8Column,
  Uint16Column,
} from './columns.js'
import { CoreBug } from './core-bug.js'
import type { Cut } from './cut.js'
import type { RecordColumns } from './item-view.js'
import { Slabs } from './slabs.js'

export const ITEM_FREE = 0
export const ITEM_QUEUED = 1 // in its shape's queue: staging or lane
export const ITEM_RECLAIMED = 2
export const ITEM_RETRYING = 3
export const ITEM_HELD = 4 // its job is on hold (S34)
export const ITEM_HELD_RECLAIMED = 5
export const ITEM_LEASED = 6
export const ITEM_ENDED = 7 // settled in this step, the row is freed by the next
export const ITEM_WINDOW = 8 // read ahead from disk, in its shape's window
export const ITEM_GROUPED = 9 // in a group that waits (S27, S28)

/** What scheduling reads and writes of an item, and what assembly reads: a batch of a lane among many
 *  costs assembly one cache line in four items, not one an item. */
const ITEM_ROW_BYTES = 40
const RECORD_ROW_BYTES = 16
const SEGMENT_WORD = 0
const OFFSET_WORD = 1
const LENGTH_WORD = 2
const ID_BYTES_MAX = 0xffff
/** What it takes of a slab are multiples of it, or of a segment where that is smaller. */
const SLAB_UNIT_BYTES = 64 * 1024

export class Items {
  readonly sequence: Float64Column
  readonly acceptedAt: Float64Column
  /** Waiting: neighbours in a queue. Retrying: `next` is the timer. Leased, grouped: row of
   *  the batch or group, and the item's index in it. */
  readonly next: Int32Column
  readonly previous: Int32Column
  readonly shape: Int32Column
  readonly job: Int32Column
  /** The lower 32 bits of its number in the arrivals of its job at its shape, where that spans several
   *  padded lengths (S20). */
  readonly arrival: Int32Column
  readonly state: Uint8Column
  readonly attempts: Uint8Column
  readonly deliveries: Uint8Column
  /** Times it came back by retry or nack: what its delay doubles with (S28). */
  readonly returns: Uint8Column

  readonly segment: Int32Column
  readonly offset: Int32Column
  readonly length: Int32Column
  readonly idBytes: Uint16Column
  /** 1: it is on disk and settles there. */
  readonly durable: Uint8Column
  readonly payloadBytes: SparseColumn

  readonly arena: Arena

  readonly slabs: Slabs
  private readonly itemRows: Rows
  private readonly recordRows: Rows
  private readonly chunks: (Chunk | null)[] = []
  /** No chunk below this one has a free row. */
  private lowestOpen = 0
  /** One chunk without items is kept, so that a queue at a chunk's edge does not allocate. */
  private spareChunk = -1
  /** Rows in use. */
  private live = 0
  lastSequence = 0
  /** Where what is only read goes: a read without a use would be left out by the compiler. */
  read = 0

  constructor(
    private readonly lengthsOnly = false,
    segmentBytes = SEGMENT_BYTES,
  ) {
    const chunkBytes = CHUNK_ROWS * (ITEM_ROW_BYTES + RECORD_ROW_BYTES)
    const unitBytes = Math.min(SLAB_UNIT_BYTES, segmentBytes)
    this.slabs = new Slabs(unitBytes, segmentBytes + chunkBytes)
    this.arena = new Arena(this.slabs, segmentBytes)
    const item = new Rows(ITEM_ROW_BYTES, this.slabs)
    this.itemRows = item
    this.sequence = new Float64Column(item, 0)
    this.acceptedAt = new Float64Column(item, 8)
    this.next = new Int32Column(item, 16)
    this.previous = new Int32Column(item, 20)
    this.shape = new Int32Column(item, 24)
    this.job = new Int32Column(item, 28)
    this.state = new Uint8Column(item, 32)
    this.attempts = new Uint8Column(item, 33)
    this.deliveries = new Uint8Column(item, 34)
    this.returns = new Uint8Column(item, 35)
    this.arrival = new Int32Column(item, 36)
    const record = new Rows(RECORD_ROW_BYTES, this.slabs)
    this.recordRows = record
    this.segment = new Int32Column(record, 4 * SEGMENT_WORD)
    this.offset = new Int32Column(record, 4 * OFFSET_WORD)
    this.length = new Int32Column(record, 4 * LENGTH_WORD)
    this.idBytes = new Uint16Column(record, 12)
    this.durable = new Uint8Column(record, 14)
    this.payloadBytes = new SparseColumn(this.slabs, new Uint8Column(record, 15))
  }

  /** @param sequence of an item that was numbered before; by default the next number. */
  alloc(sequence?: number): number {
    let index = this.lowestOpen
    while (index < this.chunks.length && this.chunks[index]?.isFull() === true) index++
    this.lowestOpen = index
    const chunk = this.chunks[index] ?? this.openChunk(index)
    if (index === this.spareChunk) this.spareChunk = -1
    chunk.live++
    this.live++
    const slot = chunk.freeHead >= 0 ? chunk.freeHead : index * CHUNK_ROWS + chunk.used++
    if (slot === chunk.freeHead) chunk.freeHead = this.next.get(slot)
    this.sequence.set(slot, sequence ?? ++this.lastSequence)
    this.attempts.set(slot, 0)
    this.deliveries.set(slot, 0)
    this.returns.set(slot, 0)
    this.durable.set(slot, 0)
    return slot
  }

  /** Copies the item's bytes into the arena: tokens, id, payload. */
  store(slot: number, cut: Cut): void {
    const { block } = cut
    const tokens = cut.tokensTo - cut.tokensFrom
    const segment = this.arena.claim(tokens * 4 + cut.idBytes + cut.payloadBytes)
    const offset = this.arena.claimedAt
    if (cut.idBytes > ID_BYTES_MAX) throw new CoreBug(`an id of ${cut.idBytes} bytes`)
    this.segment.set(slot, segment.row)
    this.offset.set(slot, offset)
    this.idBytes.set(slot, cut.idBytes)
    this.payloadBytes.set(slot, cut.payloadBytes)
    copyWords(block.tokens, cut.tokensFrom, tokens, segment.words, offset >>> 2)
    copyBytes(block.ids, cut.idFrom, cut.idBytes, segment.bytes, offset + tokens * 4)
    if (block.payloads === null) return
    const payloadAt = offset + tokens * 4 + cut.idBytes
    copyBytes(block.payloads, cut.payloadFrom, cut.payloadBytes, segment.bytes, payloadAt)
  }

  /** Where the records of these items lie. A loop of its own, so that their cache misses overlap. */
  readRecords(slots: Int32Array, into: RecordColumns): void {
    const { lengthsOnly, recordRows, idBytes, payloadBytes } = this
    let read = 0
    for (let row = 0; row < slots.length; row++) {
      const slot = slots[row]
      read ^= recordRows.int32[slot >>> CHUNK_SHIFT][(slot & ROW_MASK) * (RECORD_ROW_BYTES / 4)]
    }
    this.read = read
    for (let row = 0; row < slots.length; row++) {
      const slot = slots[row]
      const words = recordRows.int32[slot >>> CHUNK_SHIFT]
      const at = (slot & ROW_MASK) * (RECORD_ROW_BYTES / 4)
      const payload = payloadBytes.get(slot)
      into.segment[row] = words[at + SEGMENT_WORD]
      into.byteOffset[row] = words[at + OFFSET_WORD]
      into.tokenBytes[row] = lengthsOnly || payload > 0 ? 0 : words[at + LENGTH_WORD] * 4
      into.idBytes[row] = idBytes.get(slot)
      into.payloadBytes[row] = payload
    }
  }

  tokensBytes(slot: number): number {
    if (this.lengthsOnly || this.payloadBytes.get(slot) > 0) return 0
    return this.length.get(slot) * 4
  }

  /** Frees the row and its bytes. */
  free(slot: number): void {
    this.arena.release(this.segment.get(slot))
    this.state.set(slot, ITEM_FREE)
    const index = slot >>> CHUNK_SHIFT
    const chunk = this.chunks[index]!
    this.next.set(slot, chunk.freeHead)
    chunk.freeHead = slot
    chunk.live--
    this.live--
    if (index < this.lowestOpen) this.lowestOpen = index
    if (chunk.live === 0) this.retire(index)
  }

  /** Calls `visit` for every row in use, in slot order. Only for what an operator does (S14). */
  forEach(visit: (slot: number) => void): void {
    for (let index = 0; index < this.chunks.length; index++) {
      const used = this.chunks[index]?.used ?? 0
      for (let row = 0; row < used; row++) {
        const slot = index * CHUNK_ROWS + row
        if (this.state.get(slot) !== ITEM_FREE) visit(slot)
      }
    }
  }

  /** One more than the highest row that was ever in use. */
  get rows(): number {
    return this.chunks.length * CHUNK_ROWS
  }

  /** Whether the row is one of the table's, in use or not. */
  has(slot: number): boolean {
    return this.nextRow(slot) === slot
  }

  /** The first row from `slot` on whose chunk is there, or -1. It may be free. */
  nextRow(slot: number): number {
    for (let index = slot >>> CHUNK_SHIFT; index < this.chunks.length; index++) {
      const row = Math.max(slot, index * CHUNK_ROWS)
      const used = this.chunks[index]?.used ?? 0
      if (row < index * CHUNK_ROWS + used) return row
    }
    return -1
  }

  private openChunk(index: number): Chunk {
    this.itemRows.open(index)
    this.recordRows.open(index)
    const chunk = new Chunk()
    this.chunks[index] = chunk
    return chunk
  }

  private retire(index: number): void {
    if (this.live === 0 && this.slabs.isGrown) this.startOver(index)
    else if (this.spareChunk < 0) this.spareChunk = index
    else {
      const gone = Math.max(index, this.spareChunk)
      this.spareChunk = Math.min(index, this.spareChunk)
      this.closeChunk(gone)
    }
  }

  /** Nothing is left: no chunk and no segment may keep a slab, wherever it lies. */
  private startOver(index: number): void {
    this.closeChunk(index)
    if (this.spareChunk >= 0) this.closeChunk(this.spareChunk)
    this.spareChunk = -1
    this.arena.startOver()
  }

  private closeChunk(index: number): void {
    this.itemRows.close(index)
    this.recordRows.close(index)
    this.payloadBytes.close(index)
    this.chunks[index] = null
  }
}

/** Below this a loop is faster than a view, and makes no garbage. */
const COPY_LOOP_MAX = 256

function copyWords(
  from: Int32Array,
  at: number,
  count: number,
  to: Int32Array,
  toAt: number,
): void {
  if (count > COPY_LOOP_MAX) to.set(from.subarray(at, at + count), toAt)
  else for (let i = 0; i < count; i++) to[toAt + i] = from[at + i]
}

function copyBytes(
  from: Uint8Array,
  at: number,
  count: number,
  to: Uint8Array,
  toAt: number,
): void {
  if (count > COPY_LOOP_MAX) to.set(from.subarray(at, at + count), toAt)
  else for (let i = 0; i < count; i++) to[toAt + i] = from[at + i]
}

class Chunk {
  live = 0
  /** Rows that were ever in use: they come before those never touched. */
  used = 0
  freeHead = -1

  isFull(): boolean {
    return this.live === CHUNK_ROWS
  }
}
