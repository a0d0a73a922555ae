// Where the bytes of items lie: flat segments, filled from the front, freed when empty.
//
// An item's record is contiguous in one segment: tokens (4-byte aligned), id, payload. The queue
// therefore costs the garbage collector one object per 4 MiB, whatever the number of items.

export const SEGMENT_BYTES = 4 * 1024 * 1024
/** Empty segments kept for reuse, so that a steady flow allocates nothing. */
const SPARE_SEGMENTS_MAX = 2

export class Segment {
  readonly words: Int32Array
  readonly bytes: Uint8Array
  /** Records that are still in use. */
  live = 0
  usedBytes = 0

  constructor(
    readonly row: number,
    readonly buffer: ArrayBuffer,
  ) {
    this.words = new Int32Array(buffer)
    this.bytes = new Uint8Array(buffer)
  }
}

export class Arena {
  private readonly segments: (Segment | null)[] = []
  private readonly freeRows: number[] = []
  private readonly spareBuffers: ArrayBuffer[] = []
  private filling: Segment
  /** Where the record claimed last begins in its segment. */
  claimedAt = 0

  constructor(private readonly segmentBytes = SEGMENT_BYTES) {
    this.filling = this.openSegment(segmentBytes)
  }

  /** Bytes of all segments held, spare ones included. */
  allocatedBytes(): number {
    let total = this.spareBuffers.length * this.segmentBytes
    for (const segment of this.segments) total += segment === null ? 0 : segment.buffer.byteLength
    return total
  }

  segment(row: number): Segment {
    return this.segments[row]!
  }

  /** Room for a record of the segment returned, at `claimedAt`. */
  claim(byteLength: number): Segment {
    const rounded = (byteLength + 3) & ~3
    const segment = rounded > this.segmentBytes ? this.openSegment(rounded) : this.fillable(rounded)
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

  private fillable(byteLength: number): Segment {
    if (this.filling.usedBytes + byteLength > this.segmentBytes) {
      const full = this.filling
      this.filling = this.openSegment(this.segmentBytes)
      if (full.live === 0) this.closeSegment(full)
    }
    return this.filling
  }

  private openSegment(byteLength: number): Segment {
    const spare = byteLength === this.segmentBytes ? this.spareBuffers.pop() : undefined
    const row = this.freeRows.pop() ?? this.segments.length
    const segment = new Segment(row, spare ?? new ArrayBuffer(byteLength))
    this.segments[row] = segment
    return segment
  }

  private closeSegment(segment: Segment): void {
    this.segments[segment.row] = null
    this.freeRows.push(segment.row)
    const keep = segment.buffer.byteLength === this.segmentBytes
    if (keep && this.spareBuffers.length < SPARE_SEGMENTS_MAX)
      this.spareBuffers.push(segment.buffer)
  }
}
