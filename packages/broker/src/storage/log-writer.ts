// The log of accepted items and settlements: appends are written behind each other into segments, several of them with
// one write and one sync. Belongs to the writing thread; the kernel does the writing on another, so that
// the next appends can be made ready meanwhile.
//
// A segment that a write failed on takes no more: what the disk holds behind its last good append is not
// known. A broker begins a segment of its own too, behind whatever the one before it left.
import fs from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type AppendKind, type LoggedBlock, writeAppendHeader } from './append-header.js'
import { syncDirectory } from './data-dir.js'
import type { LogPosition } from './log-position.js'
import {
  encodeSegmentHeader,
  foreignSegment,
  isOurs,
  SEGMENT_BYTES_MAX,
  SEGMENT_HEADER_BYTES,
  segmentPath,
  segmentsIn,
} from './segment-file.js'

const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC } = fs.constants
const writev = promisify(fs.writev)
const NAMES_TRIED = 100

export interface WritableAppend {
  readonly kind: AppendKind
  readonly job: number
  readonly blocks: readonly LoggedBlock[]
  /** One behind the other; the first begins with room for the header. */
  readonly parts: readonly Buffer[]
  /** Of all parts. */
  readonly bytes: number
}

interface OpenSegment {
  readonly segment: number
  readonly file: number
  end: number
}

export class LogWriter {
  #open: OpenSegment | null = null
  #next: number
  #isWriting = false
  /** Of segments that are there. */
  readonly #sizes = new Map<number, number>()

  /** @param next the first segment to be begun: greater than each that is there. */
  constructor(
    readonly dataDir: string,
    readonly hashKey: Buffer,
    readonly isSynced: boolean,
    next: number,
    readonly segmentBytesMax: number,
  ) {
    this.#next = next
  }

  /** Where the next append begins. */
  get position(): LogPosition {
    const { segment, end: offset } = this.#open ?? { segment: this.#next, end: 0 }
    return { segment, offset }
  }

  /** Where its files are, for words to the operator. */
  get path(): string {
    return join(this.dataDir, 'segment-*.log')
  }

  /** A call of `write` is under way. */
  get isWriting(): boolean {
    return this.#isWriting
  }

  get bytes(): number {
    let bytes = 0
    for (const size of this.#sizes.values()) bytes += size
    return bytes
  }

  /** Of a segment that an earlier life left, or that is being written. */
  note(segment: number, bytes: number): void {
    this.#sizes.set(segment, bytes)
  }

  segments(): ReadonlyMap<number, number> {
    return this.#sizes
  }

  /**
   * Writes the appends behind each other; durable when it resolves. One call at a time. When it rejects
   * none of them is in the log. @returns where the first begins; the others follow it.
   */
  async write(appends: readonly WritableAppend[]): Promise<LogPosition> {
    if (this.#open !== null && this.#open.end >= this.segmentBytesMax) this.endSegment()
    this.#isWriting = true
    try {
      this.#open ??= this.#begin()
      const open = this.#open
      const start = { segment: open.segment, offset: open.end }
      for (const { kind, parts, bytes, job, blocks } of appends)
        writeAppendHeader(parts[0], this.hashKey, kind, job, start.offset, blocks, bytes)
      await writeAll(
        open.file,
        appends.flatMap(({ parts }) => parts),
        open.end,
      )
      for (const { bytes } of appends) open.end += bytes
      this.note(open.segment, open.end)
      return start
    } catch (error) {
      this.#giveUpSegment()
      throw error
    } finally {
      this.#isWriting = false
    }
  }

  /** Whether the disk takes a segment, when it has refused one. @throws what the disk says */
  probe(): void {
    this.#open ??= this.#begin()
  }

  /** What is written next begins another segment. Not while something is being written. */
  endSegment(): void {
    if (this.#open === null) return
    fs.closeSync(this.#open.file)
    this.#next = this.#open.segment + 1
    this.#open = null
  }

  /** Takes the file away; nothing refers to it. @throws what the disk says */
  remove(segment: number): void {
    fs.rmSync(segmentPath(this.dataDir, segment), { force: true })
    this.#sizes.delete(segment)
  }

  #begin(): OpenSegment {
    for (let tries = 0; ; tries++) {
      try {
        return this.#beginAs(this.#next)
      } catch (error) {
        // Something of that name is in the way: it is left there.
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || tries === NAMES_TRIED) throw error
        this.#next += 1
      }
    }
  }

  #beginAs(segment: number): OpenSegment {
    const path = segmentPath(this.dataDir, segment)
    const flags = O_WRONLY | O_CREAT | O_EXCL | (this.isSynced ? O_DSYNC : 0)
    const file = fs.openSync(path, flags, 0o600)
    try {
      fs.writeSync(file, encodeSegmentHeader(segment, this.hashKey), 0, SEGMENT_HEADER_BYTES, 0)
      if (this.isSynced) syncDirectory(this.dataDir)
    } catch (error) {
      fs.closeSync(file)
      fs.rmSync(path, { force: true })
      throw error
    }
    this.note(segment, SEGMENT_HEADER_BYTES)
    return { segment, file, end: SEGMENT_HEADER_BYTES }
  }

  #giveUpSegment(): void {
    const open = this.#open
    if (open === null) return
    this.endSegment()
    try {
      const path = segmentPath(this.dataDir, open.segment)
      if (open.end > SEGMENT_HEADER_BYTES) fs.truncateSync(path, open.end)
      else this.remove(open.segment)
    } catch {
      // What was refused may stand there still: the index goes on behind it with its next transaction.
    }
  }
}

/** Behind what earlier lives left. */
export function openLog(
  dataDir: string,
  hashKey: Buffer,
  isSynced: boolean,
  known: LogPosition,
  onForeign: (problem: string) => void,
  segmentBytesMax = SEGMENT_BYTES_MAX,
): LogWriter {
  const files = segmentsIn(dataDir)
  const last = Math.max(known.segment, ...files.map(({ segment }) => segment))
  const log = new LogWriter(dataDir, hashKey, isSynced, last + 1, segmentBytesMax)
  for (const file of files) {
    // What is noted may be removed one day.
    if (isOurs(dataDir, file, hashKey)) log.note(file.segment, file.bytes)
    else onForeign(foreignSegment(segmentPath(dataDir, file.segment)))
  }
  return log
}

/** The kernel takes no more buffers with one write, and may write less than it is given. */
const BUFFERS_MAX = 1024

async function writeAll(file: number, buffers: Buffer[], at: number): Promise<void> {
  let left = buffers
  let position = at
  while (left.length > 0) {
    const { bytesWritten } = await writev(file, left.slice(0, BUFFERS_MAX), position)
    if (bytesWritten === 0)
      throw Object.assign(new Error('nothing was written'), { code: 'ENOSPC' })
    left = behind(left, bytesWritten)
    position += bytesWritten
  }
}

function behind(buffers: readonly Buffer[], bytes: number): Buffer[] {
  let skip = bytes
  for (let i = 0; i < buffers.length; i++) {
    if (skip < buffers[i].byteLength) return [buffers[i].subarray(skip), ...buffers.slice(i + 1)]
    skip -= buffers[i].byteLength
  }
  return []
}
