// A job's results in the store. What counts as read goes by offset here: the store knows the bytes.
import type { Store } from '../storage/store.js'
import { type ResultRecord, recordBytes } from './log.js'
import type { JobResults, ResultReader } from './reader.js'

export class DiskResults implements JobResults {
  /** As of the last write and read mark that the store has told. */
  unreadBytes = 0
  /** Before it, all went to some reader, without a gap. */
  #handedOut: number
  #read: number

  /**
   * @param readOffset all before it was read in an earlier life.
   * @param endOffset all before it may have gone to a reader then: one that goes on from there has
   * skipped nothing that this life knows of.
   */
  constructor(
    readonly store: Store,
    readonly job: number,
    readOffset = 0,
    endOffset = 0,
  ) {
    this.#read = readOffset
    this.#handedOut = endOffset
  }

  get firstOffset(): number {
    return this.store.resultRange(this.job).firstOffset
  }

  get count(): number {
    return this.store.resultRange(this.job).endOffset
  }

  open(offset: number): ResultReader {
    return new DiskReader(this, offset)
  }

  handOut(from: number, to: number): void {
    if (from <= this.#handedOut) this.#handedOut = Math.max(this.#handedOut, to)
  }

  /** @returns bytes that were unread until now. */
  async markRead(offset: number): Promise<number> {
    const upTo = Math.min(offset, this.#handedOut)
    if (upTo <= this.#read) return 0
    this.#read = upTo
    const unread = await this.store.resultsRead(this.job, upTo)
    const bytes = this.unreadBytes - unread
    this.unreadBytes = unread
    return bytes
  }
}

class DiskReader implements ResultReader {
  readonly #from: number
  /** Offsets at which parts ended, and the bytes up to there: what has arrived is told by bytes. */
  readonly #parts: { offset: number; bytes: number }[]
  #bytes = 0

  constructor(
    readonly results: DiskResults,
    public offset: number,
  ) {
    this.#from = offset
    this.#parts = [{ offset, bytes: 0 }]
  }

  get isDropped(): boolean {
    return this.offset < this.results.firstOffset
  }

  async take(end: number, maxBytes: number): Promise<readonly ResultRecord[]> {
    const { results } = this
    if (this.offset >= Math.min(end, results.count)) return []
    const { records } = await results.store.results(results.job, this.offset, maxBytes)
    const taken = records.slice(0, end - this.offset)
    this.offset += taken.length
    for (const record of taken) this.#bytes += recordBytes(record)
    this.#parts.push({ offset: this.offset, bytes: this.#bytes })
    results.handOut(this.#from, this.offset)
    return taken
  }

  arrived(inFlightBytes: number): Promise<number> {
    const upTo = this.#bytes - inFlightBytes
    // The part that reaches beyond counts too: were it left out, more than `inFlightBytes` would stay
    // unread for as long as nothing follows it, and a job on hold would never go on.
    while (this.#parts.length > 1 && this.#parts[0].bytes < upTo) this.#parts.shift()
    // The first part is where the reader began: all before that it has had.
    return this.results.markRead(this.#parts[0].offset)
  }
}
