// The results of one job, in the order in which its items settled: flat records in segments that
// only grow, so that ten million results are a few thousand buffers. Readers go by offset.
//
// A record, 8-aligned: u32 length, id bytes, value bytes, attempts, truncated to; u8 status, u8
// encoding, u16 zero; the value (8-aligned, so that a float32 row is read in place); the id.
import type { SettledStatus } from '@fabric/core'
import type { JobResults, ResultReader } from './reader.js'

const HEADER_BYTES = 24
const SEGMENT_BYTES_MIN = 16 * 1024
const SEGMENT_BYTES_MAX = 1024 * 1024

export const STATUSES: readonly SettledStatus[] = [
  'completed',
  'failed',
  'expired',
  'cancelled',
  'quarantined',
]

export interface ResultRecord {
  readonly status: SettledStatus
  readonly attempts: number
  readonly truncatedTo: number
  readonly encoding: number
  readonly id: Uint8Array
  readonly value: Uint8Array
}

interface Segment {
  readonly view: DataView
  readonly bytes: Uint8Array
  /** Offset and byte position in the log of the segment's first record. */
  readonly startOffset: number
  readonly startByte: number
  usedBytes: number
}

/** Where a reader stands: before the record at `offset`. */
export interface LogCursor {
  offset: number
  /** Bytes of the log before it: what S34 counts. */
  bytePosition: number
  segment: number
  byteInSegment: number
}

export class ResultLog implements JobResults {
  /** Holes at the front stand for segments that were dropped. */
  readonly #segments: (Segment | null)[] = []
  #firstKept = 0
  #count = 0
  #appendedBytes = 0
  /** Before it, all went to some reader, without a gap. */
  #handedOutBytes = 0
  /** Before it, all was read by one. */
  #readBytes = 0
  /** Segments from here on are not wholly read. */
  #firstUnread = 0

  /** @param onSegmentRead told once for each full segment that has been read to its end. */
  constructor(readonly onSegmentRead: (log: ResultLog, bytes: number) => void = () => {}) {}

  get count(): number {
    return this.#count
  }

  get unreadBytes(): number {
    return this.#appendedBytes - this.#readBytes
  }

  /** Memory of what is held, read or not. */
  get heldBytes(): number {
    let bytes = 0
    for (let i = this.#firstKept; i < this.#segments.length; i++)
      bytes += this.#segments[i]!.bytes.byteLength
    return bytes
  }

  /** First offset that can still be read. */
  get firstOffset(): number {
    return this.#segments[this.#firstKept]?.startOffset ?? this.#count
  }

  open(offset: number): ResultReader {
    return new LogReader(this, offset)
  }

  /** @returns bytes that the record takes. */
  append(record: ResultRecord): number {
    const { id, value } = record
    const size = recordBytes(record)
    const segment = this.#room(size)
    const at = segment.usedBytes
    segment.view.setUint32(at, size, true)
    segment.view.setUint32(at + 4, id.byteLength, true)
    segment.view.setUint32(at + 8, value.byteLength, true)
    segment.view.setUint32(at + 12, record.attempts, true)
    segment.view.setUint32(at + 16, record.truncatedTo, true)
    segment.bytes[at + 20] = STATUSES.indexOf(record.status)
    segment.bytes[at + 21] = record.encoding
    segment.bytes.set(value, at + HEADER_BYTES)
    segment.bytes.set(id, at + HEADER_BYTES + value.byteLength)
    segment.usedBytes += size
    this.#appendedBytes += size
    this.#count += 1
    return size
  }

  /** A cursor before the record at `offset`; `offset` may be the end, and not be dropped. */
  seek(offset: number): LogCursor {
    let index = this.#segments.length - 1
    while (index > this.#firstKept && this.#segments[index]!.startOffset > offset) index -= 1
    const segment = this.#segments[index]
    if (segment === undefined || segment === null)
      return {
        offset: this.#count,
        bytePosition: this.#appendedBytes,
        segment: 0,
        byteInSegment: 0,
      }
    const cursor = {
      offset: segment.startOffset,
      bytePosition: segment.startByte,
      segment: index,
      byteInSegment: 0,
    }
    while (cursor.offset < offset && this.next(cursor) !== null);
    return cursor
  }

  /** The record at the cursor, which moves behind it; null at the end. Views are borrowed. */
  next(cursor: LogCursor): ResultRecord | null {
    if (cursor.offset >= this.#count) return null
    let segment = this.#segments[cursor.segment]
    // A cursor at the end of a segment outlives it.
    if (segment === null || cursor.byteInSegment === segment.usedBytes) {
      cursor.segment += 1
      cursor.byteInSegment = 0
      segment = this.#segments[cursor.segment]!
    }
    const at = cursor.byteInSegment
    const { view, bytes } = segment
    const recordBytes = view.getUint32(at, true)
    const valueAt = at + HEADER_BYTES
    const idAt = valueAt + view.getUint32(at + 8, true)
    cursor.offset += 1
    cursor.bytePosition += recordBytes
    cursor.byteInSegment += recordBytes
    return {
      status: STATUSES[bytes[at + 20]],
      attempts: view.getUint32(at + 12, true),
      truncatedTo: view.getUint32(at + 16, true),
      encoding: bytes[at + 21],
      value: bytes.subarray(valueAt, idAt),
      id: bytes.subarray(idAt, idAt + view.getUint32(at + 4, true)),
    }
  }

  /** A reader that began at `startByte` was given all up to the cursor. */
  handOut(startByte: number, cursor: LogCursor): void {
    if (startByte > this.#handedOutBytes) return
    this.#handedOutBytes = Math.max(this.#handedOutBytes, cursor.bytePosition)
  }

  /**
   * All before the byte position has been read, as far as it was handed out: who asks from further on
   * has skipped what lies between. @returns bytes that were unread until now.
   */
  markRead(bytePosition: number): number {
    const bytes = Math.max(0, Math.min(bytePosition, this.#handedOutBytes) - this.#readBytes)
    this.#readBytes += bytes
    while (this.#firstUnread < this.#segments.length - 1) {
      const segment = this.#segments[this.#firstUnread]!
      if (segment.startByte + segment.usedBytes > this.#readBytes) break
      // Moved on first: whoever is told may drop it at once.
      this.#firstUnread += 1
      this.onSegmentRead(this, segment.bytes.byteLength)
    }
    return bytes
  }

  /** Gives up the oldest segment that is wholly read. */
  dropOldest(): void {
    if (this.#firstKept >= this.#firstUnread) return
    this.#segments[this.#firstKept] = null
    this.#firstKept += 1
  }

  /** Whether the cursor stands on something that was dropped since. */
  isDropped(cursor: LogCursor): boolean {
    return cursor.offset < this.firstOffset
  }

  #room(recordBytes: number): Segment {
    const last = this.#segments.at(-1) ?? null
    if (last !== null && last.usedBytes + recordBytes <= last.bytes.byteLength) return last
    const grown = last === null ? SEGMENT_BYTES_MIN : 2 * last.bytes.byteLength
    const length = Math.max(recordBytes, Math.min(grown, SEGMENT_BYTES_MAX))
    const bytes = new Uint8Array(length)
    const segment: Segment = {
      view: new DataView(bytes.buffer),
      bytes,
      startOffset: this.#count,
      startByte: this.#appendedBytes,
      usedBytes: 0,
    }
    this.#segments.push(segment)
    return segment
  }
}

/** Bytes that a record takes, in memory or on disk: what S34 counts. */
export const recordBytes = ({ id, value }: ResultRecord): number =>
  align8(HEADER_BYTES + value.byteLength + id.byteLength)

class LogReader implements ResultReader {
  readonly #cursor: LogCursor
  readonly #startByte: number

  constructor(
    readonly log: ResultLog,
    offset: number,
  ) {
    this.#cursor = log.seek(offset)
    this.#startByte = this.#cursor.bytePosition
  }

  get offset(): number {
    return this.#cursor.offset
  }

  get isDropped(): boolean {
    return this.log.isDropped(this.#cursor)
  }

  take(end: number, maxBytes: number): readonly ResultRecord[] {
    const records: ResultRecord[] = []
    const until = this.#cursor.bytePosition + maxBytes
    while (this.#cursor.offset < end && this.#cursor.bytePosition < until) {
      const record = this.log.next(this.#cursor)
      if (record === null) break
      records.push(record)
    }
    this.log.handOut(this.#startByte, this.#cursor)
    return records
  }

  arrived(inFlightBytes: number): number {
    return this.log.markRead(Math.max(this.#startByte, this.#cursor.bytePosition - inFlightBytes))
  }
}

const align8 = (bytes: number) => Math.ceil(bytes / 8) * 8
