// Where the bytes of items lie: flat segments, filled from the front, freed when empty.
//
// An item's record is contiguous in one segment: tokens (4-byte aligned), id, payload. The queue
// therefore costs the garbage collector one object per 4 MiB, whatever the number of items.

import type { Piece, Slabs } from './slabs.js'

export const SEGMENT_BYTES = 4 * 1024 * 1024

export class Segment {
  readonly words: Int32Array
  readonly bytes: Uint8Array
  /** Records that are still in use. */
  live = 0
  usedBytes = 0

  constructor(
    readonly row: number,
    readonly byteLength: number,
    /** Null: a record longer than a segment, with memory of its own. */
    readonly piece: Piece | null,
  ) {
    const buffer = piece === null ? new ArrayBuffer(byteLength) : piece.buffer
    const at = piece === null ? 0 : piece.byteOffset
    this.words = new Int32Array(buffer, at, byteLength >>> 2)
    this.bytes = new Uint8Array(buffer, at, byteLength)
  }
}

export class Arena {
  private readonly segments: (Segment | null)[] = []
  private readonly freeRows: number[] = []
  private filling: Segment
  /** Where the record claimed last begins in its segment. */
  claimedAt = 0

  constructor(
    private readonly slabs: Slabs,
    private readonly segmentBytes = SEGMENT_BYTES,
  ) {
    this.filling = this.openSegment()
  }

  /** Bytes of all segments. */
  allocatedBytes(): number {
    let total = 0
    for (const segment of this.segments) total += segment === null ? 0 : segment.byteLength
    return total
  }

  segment(row: number): Segment {
    return this.segments[row]!
  }

  /** Room for a record of the segment returned, at `claimedAt`. */
  claim(byteLength: number): Segment {
    const rounded = (byteLength + 3) & ~3
    const segment = rounded > this.segmentBytes ? this.openOwn(rounded) : this.fillable(rounded)
    this.claimedAt = segment.usedBytes
    segment.usedBytes += rounded
    segment.live++
    return segment
  }

  release(row: number): void {
    const segment = this.segments[row]!
    segment.live--
    if (segment.live > 0) return
    if (segment === this.filling) segment.usedBytes = 0
    else this.closeSegment(segment)
  }

  /** No record is left: the segment that would be filled next gives its slab up. */
  startOver(): void {
    this.closeSegment(this.filling)
    this.filling = this.openSegment()
  }

  private fillable(byteLength: number): Segment {
    if (this.filling.usedBytes + byteLength > this.segmentBytes) {
      const full = this.filling
      this.filling = this.openSegment()
      if (full.live === 0) this.closeSegment(full)
    }
    return this.filling
  }

  private openSegment(): Segment {
    return this.add(this.segmentBytes, this.slabs.take(this.segmentBytes))
  }

  private openOwn(byteLength: number): Segment {
    return this.add(byteLength, null)
  }

  private add(byteLength: number, piece: Piece | null): Segment {
    const row = this.freeRows.pop() ?? this.segments.length
    const segment = new Segment(row, byteLength, piece)
    this.segments[row] = segment
    return segment
  }

  private closeSegment(segment: Segment): void {
    this.segments[segment.row] = null
    this.freeRows.push(segment.row)
    if (segment.piece !== null) this.slabs.give(segment.piece)
  }
}
