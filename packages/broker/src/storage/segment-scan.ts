// A segment read for its appends: their headers one after the other, and little of what lies between them.
// Like a start (log-tail.ts) it passes over what is not whole: an earlier life may have ended there.
import {
  APPEND_HEADER_BYTES_MIN,
  type AppendHeader,
  appendHeaderBytesAt,
  readAppendHeader,
} from './append-header.js'
import type { BlockReader } from './block-reader.js'
import { SEGMENT_HEADER_BYTES } from './segment-file.js'

const WINDOW_BYTES = 16 * 1024
/** Of 100,000 blocks, far more than a request has items: what says that it is longer is passed over. */
const HEADER_BYTES_MAX = 4 * 2 ** 20

export interface AppendPlace {
  readonly header: AppendHeader
  readonly offset: number
}

export class SegmentScan {
  /** How often the file was read. */
  reads = 0
  /** The reader's memory, until another is read. */
  #window: Uint8Array | null = null
  #windowAt = 0

  /** @param bytes of the file: nothing is appended to it any more. */
  constructor(
    readonly reader: BlockReader,
    readonly segment: number,
    readonly bytes: number,
    readonly hashKey: Buffer,
  ) {}

  /** Ends early where the file cannot be read. null: nothing was found so far, and the file was read again. */
  *appends(): Generator<AppendPlace | null> {
    for (let at = SEGMENT_HEADER_BYTES; at + APPEND_HEADER_BYTES_MIN <= this.bytes; ) {
      const reads = this.reads
      const fixed = this.read(at, APPEND_HEADER_BYTES_MIN)
      if (fixed === null) return
      const header = this.#header(at, fixed)
      if (header !== null) yield { header, offset: at }
      else if (reads !== this.reads) yield null
      at += header?.bytes ?? 8
    }
  }

  #header(at: number, fixed: Buffer): AppendHeader | null {
    const bytes = appendHeaderBytesAt(fixed, 0)
    if (bytes === null || bytes > HEADER_BYTES_MAX) return null
    const whole = this.read(at, bytes)
    return whole === null ? null : readAppendHeader(whole, this.hashKey, 0)
  }

  /** Good until the next call; null: the file does not hold them, or cannot be read there. */
  read(at: number, bytes: number): Buffer | null {
    if (at + bytes > this.bytes) return null
    let window = this.#window
    const from = at - this.#windowAt
    if (window === null || from < 0 || from + bytes > window.byteLength) {
      const most = Math.min(Math.max(bytes, WINDOW_BYTES), this.bytes - at)
      // What stands beside a sector that cannot be read may be whole.
      const found = this.#readFile(at, most) ?? this.#readFile(at, bytes)
      if (found === null) return null
      if (window !== null) this.reader.release(window)
      window = found
      this.#window = found
      this.#windowAt = at
    }
    const start = at - this.#windowAt
    return Buffer.from(window.buffer, start, bytes)
  }

  #readFile(offset: number, bytes: number): Uint8Array | null {
    this.reads += 1
    try {
      return this.reader.read({ segment: this.segment, offset, bytes })
    } catch (error) {
      if (typeof (error as NodeJS.ErrnoException).code === 'string') return null
      throw error
    }
  }
}
