// Appends on their way: admitted, being written to the log, in the log and not yet in the index. They keep
// their order throughout.
import type { LogPosition } from './log-position.js'
import type { Admitted, Logged, Writer } from './writer.js'

/** Written and synced at once; it bounds the wait of whoever comes behind. */
const WRITE_BYTES_MAX = 8 * 2 ** 20
/** The kernel takes up to 1,024 buffers with one write. */
const WRITE_APPENDS_MAX = 1000

export interface PendingAppend {
  readonly id: number
  readonly admitted: Admitted
  readonly bytes: number
  readonly isAnswered: boolean
}

export class AppendQueue {
  #waiting: PendingAppend[] = []
  #writing: readonly PendingAppend[] = []
  #logged: Logged[] = []
  #position: LogPosition
  /** Ever added. */
  #added = 0
  /** Of those that wait, and those being written. */
  bytes = 0
  /** Of those in the log and not in the index. */
  loggedBytes = 0
  /** When the first of them came there, by performance.now(). */
  loggedSinceMs = 0

  constructor(readonly writer: Writer) {
    this.#position = writer.log.position
  }

  add(append: PendingAppend): void {
    this.#waiting.push(append)
    this.#added += 1
    this.bytes += append.bytes
  }

  get isWriting(): boolean {
    return this.#writing.length > 0
  }

  /** None waits, and none is being written. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && !this.isWriting
  }

  get isFull(): boolean {
    return this.bytes >= WRITE_BYTES_MAX
  }

  get areAllAnswered(): boolean {
    return this.#waiting.every(({ isAnswered }) => isAnswered)
  }

  /** How many were ever added: what comes behind them waits until as many are `done`. */
  get added(): number {
    return this.#added
  }

  /** In the log, or refused. */
  get done(): number {
    return this.#added - this.#waiting.length - this.#writing.length
  }

  get logged(): readonly Logged[] {
    return this.#logged
  }

  /** Behind the last of `logged`. */
  get position(): LogPosition {
    return this.#position
  }

  /**
   * Writes the next ones to the log. One call at a time.
   * @returns those that are in the log now. When it rejects they wait again, before the others.
   */
  async writeNext(): Promise<readonly PendingAppend[]> {
    const next = this.#takeNext()
    this.#writing = next
    try {
      await this.#write(next.map(({ admitted }) => admitted))
    } catch (error) {
      this.#waiting = [...next, ...this.#waiting]
      this.#writing = []
      this.#position = this.writer.log.position
      throw error
    }
    this.#writing = []
    for (const { bytes } of next) {
      this.bytes -= bytes
      this.loggedBytes += bytes
    }
    return next
  }

  /** Takes out those that nobody has been told of. */
  refuse(): PendingAppend[] {
    const refused = this.#waiting.filter(({ isAnswered }) => !isAnswered)
    this.#waiting = this.#waiting.filter(({ isAnswered }) => isAnswered)
    for (const { bytes } of refused) this.bytes -= bytes
    this.writer.release(refused.map(({ admitted }) => admitted))
    return refused
  }

  /** All that are not in the index. */
  unindexed(): Pick<Logged, 'entries' | 'encoded'>[] {
    const admitted = [...this.#writing, ...this.#waiting].map((pending) => pending.admitted)
    return [...this.#logged, ...admitted]
  }

  /** `logged` was taken in. */
  indexed(): void {
    this.#logged = []
    this.loggedBytes = 0
  }

  #takeNext(): PendingAppend[] {
    let bytes = 0
    let count = 0
    while (count < Math.min(this.#waiting.length, WRITE_APPENDS_MAX) && bytes < WRITE_BYTES_MAX) {
      bytes += this.#waiting[count].bytes
      count += 1
    }
    return this.#waiting.splice(0, count)
  }

  async #write(appends: readonly Admitted[]): Promise<void> {
    const written = appends.filter(({ encoded }) => encoded.accepted > 0)
    if (written.length === 0) return
    const { log } = this.writer
    let { segment, offset } = await log.write(
      'accepted',
      written.map(({ encoded }) => encoded),
    )
    if (this.#logged.length === 0) this.loggedSinceMs = performance.now()
    for (const { entries, encoded } of written) {
      const { job, accepted, last, blocks, bytes } = encoded
      // Without the bytes, whose memory is used again.
      this.#logged.push({ entries, encoded: { job, accepted, last, blocks }, segment, offset })
      offset += bytes.byteLength
    }
    this.#position = log.position
    this.writer.release(written)
  }
}
