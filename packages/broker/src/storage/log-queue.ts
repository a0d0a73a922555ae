// What goes into the log, on its way: accepted items and settlements wait, are written, and are taken over
// by the loop in the order in which they came (write-loop.ts). What is accepted is then kept until a
// transaction takes it into the index.
import type { Admitted, Logged } from './admitted.js'
import type { Move } from './compaction.js'
import type { ItemColumns } from './item-block.js'
import type { LogPosition } from './log-position.js'
import type { LogWriter, WritableAppend } from './log-writer.js'
import { type PackedSettled, settledAppend } from './settled-columns.js'
import type { LentBuffer } from './shared-buffers.js'
import type { Writer } from './writer.js'

/**
 * Written and synced at once: it bounds the wait of whoever comes behind, and what has left the processor's
 * cache costs three times as much to write.
 */
const WRITE_BYTES_MAX = 2 * 2 ** 20
/** Relaxed, nothing waits for company beyond it. */
const WAITING_BYTES_MAX = 2 ** 20
/** Of the log that the index does not know: a start has to read it. */
const UNINDEXED_BYTES_MAX = 64 * 2 ** 20
/** Of that, settlements, whose memory is held until a transaction has taken them in. */
const HELD_BYTES_MAX = 16 * 2 ** 20
/** The kernel takes up to 1,024 buffers with one write; more would take two syncs. */
const WRITE_PARTS_MAX = 1000

interface Queued {
  /** In memory, about. */
  readonly bytes: number
}

export interface PendingItems extends Queued {
  readonly kind: 'items'
  readonly id: number
  readonly admitted: Admitted
  readonly isAnswered: boolean
  /** Memory that it is written from, which is given back when it has been. */
  readonly borrowed: LentBuffer | null
}

export interface PendingSettle extends Queued {
  readonly kind: 'settle'
  readonly id: number
  readonly settled: PackedSettled
  /** The memory that it is in, until a transaction has taken it in. */
  readonly borrowed: LentBuffer
}

/** Blocks of an older segment: nobody waits for them. */
interface PendingMove extends Queued {
  readonly kind: 'moved'
  readonly move: Move
}

export type Pending = PendingItems | PendingSettle | PendingMove

/** In the log, from `start` to `end`. */
export interface Written {
  readonly pending: Pending
  readonly start: LogPosition
  readonly end: LogPosition
}

export class LogQueue {
  #waiting: Pending[] = []
  #writing: readonly Pending[] = []
  readonly #written: Written[] = []
  #logged: Logged[] = []
  #position: LogPosition
  #added = 0
  #taken = 0
  #moves = 0
  /** Of those that wait, and those being written. */
  bytes = 0
  /** Of those that were taken and are not in the index. */
  #unindexedBytes = 0
  /** Of settlements among them. */
  #heldBytes = 0

  /** @param onWritten told of items that need their memory no more: they were written, or refused. */
  constructor(
    readonly writer: Writer,
    readonly onWritten: (items: PendingItems) => void = () => {},
  ) {
    this.#position = writer.log.position
  }

  addMoves(moves: readonly Move[]): void {
    for (const move of moves) this.add({ kind: 'moved', move, bytes: move.append.bytes })
    this.#moves += moves.length
  }

  /** A step of compaction is to be made, and those of the one before it have been taken. */
  get isMoveDue(): boolean {
    return this.#moves === 0 && this.writer.compaction.isDue(this.hasWaiting)
  }

  add(pending: Pending): void {
    this.#waiting.push(pending)
    this.#added += 1
    this.bytes += pending.bytes
  }

  get isWriting(): boolean {
    return this.#writing.length > 0
  }

  /** None waits, none is being written, and all that were written have been taken. */
  get isEmpty(): boolean {
    return this.#added === this.#taken
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Whether nobody waits for the next write, and it is not large yet. */
  get mayWait(): boolean {
    if (this.bytes >= WAITING_BYTES_MAX) return false
    const asked = this.#waiting.filter(({ kind }) => kind !== 'moved')
    if (asked.length === 0 && this.#waiting.length > 0) return false
    return asked.every((pending) => pending.kind === 'items' && pending.isAnswered)
  }

  /** How many were ever added: what comes behind them waits until as many are `taken`. */
  get added(): number {
    return this.#added
  }

  /** In the log and taken over, or refused. */
  get taken(): number {
    return this.#taken
  }

  /** Accepted items that are not in the index. */
  get logged(): readonly Logged[] {
    return this.#logged
  }

  /** Behind what was taken last: the index knows the log up to there with the next transaction. */
  get position(): LogPosition {
    return this.#position
  }

  /** Writes the next ones to the log. One call at a time. When it rejects they wait again, before the others. */
  async writeNext(): Promise<void> {
    const next = this.#takeNext()
    this.#writing = next
    try {
      this.#written.push(...(await write(this.writer.log, next)))
    } catch (error) {
      this.#waiting = [...next, ...this.#waiting]
      if (this.#written.length === 0) this.#position = this.writer.log.position
      throw error
    } finally {
      this.#writing = []
    }
    for (const { bytes } of next) this.bytes -= bytes
  }

  /** The next one that was written, which is to be taken. */
  get written(): Written | null {
    return this.#written[0] ?? null
  }

  /** The loop has done with `written` what is to be done. */
  take(): void {
    const { pending, start, end } = this.#written.shift()!
    this.#taken += 1
    this.#position = end
    this.#unindexedBytes += pending.bytes
    if (pending.kind === 'settle') this.#heldBytes += pending.bytes
    if (pending.kind === 'moved') {
      this.#moves -= 1
      this.writer.compaction.written(pending.move, start)
    }
    if (pending.kind !== 'items') return
    const { entries, encoded } = pending.admitted
    const { job, accepted, last, blocks } = encoded
    // Without the bytes, whose memory is used again.
    if (accepted > 0)
      this.#logged.push({ entries, encoded: { job, accepted, last, blocks }, ...start })
    this.#release(pending)
  }

  /** Takes out the items that nobody has been told of, and what was to be moved. */
  refuse(): PendingItems[] {
    this.#dropMoves()
    const refused: PendingItems[] = []
    this.#waiting = this.#waiting.filter((pending) => {
      if (pending.kind !== 'items' || pending.isAnswered) return true
      refused.push(pending)
      return false
    })
    this.#taken += refused.length
    for (const pending of refused) {
      this.bytes -= pending.bytes
      this.#release(pending)
    }
    return refused
  }

  #dropMoves(): void {
    const moves = this.#waiting.filter(({ kind }) => kind === 'moved')
    if (moves.length > 0) this.writer.compaction.refused()
    this.#waiting = this.#waiting.filter(({ kind }) => kind !== 'moved')
    this.#taken += moves.length
    this.#moves -= moves.length
    for (const { bytes } of moves) this.bytes -= bytes
  }

  #release(pending: PendingItems): void {
    this.writer.release(pending.admitted)
    this.onWritten(pending)
  }

  /** Gives up what waits: the store is closed while the disk fails. */
  giveUp(): (PendingItems | PendingSettle)[] {
    return this.#waiting.splice(0).filter((pending) => pending.kind !== 'moved')
  }

  /** All items that are not in the index. */
  unindexed(): Pick<Logged, 'entries' | 'encoded'>[] {
    const written = this.#written.map(({ pending }) => pending)
    const all = [...written, ...this.#writing, ...this.#waiting]
    const admitted = all.flatMap((pending) => (pending.kind === 'items' ? [pending.admitted] : []))
    return [...this.#logged, ...admitted]
  }

  /** The index should take in what was taken, whoever waits. */
  get isIndexDue(): boolean {
    return this.#unindexedBytes >= UNINDEXED_BYTES_MAX || this.#heldBytes >= HELD_BYTES_MAX
  }

  /** A transaction has taken in all that was taken. */
  indexed(): void {
    this.#logged = []
    this.#unindexedBytes = 0
    this.#heldBytes = 0
  }

  #takeNext(): Pending[] {
    let bytes = 0
    let count = 0
    let parts = 0
    while (count < this.#waiting.length && bytes < WRITE_BYTES_MAX) {
      const next = this.#waiting[count]
      parts += next.kind === 'items' ? next.admitted.encoded.parts.length : 1
      if (count > 0 && parts > WRITE_PARTS_MAX) break
      bytes += next.bytes
      count += 1
    }
    return this.#waiting.splice(0, count)
  }
}

async function write(log: LogWriter, queued: readonly Pending[]): Promise<Written[]> {
  const appends = queued.map(appendOf)
  const some = appends.filter((append) => append !== null)
  let at = some.length > 0 ? await log.write(some) : log.position
  return queued.map((pending, index) => {
    const start = at
    at = { ...start, offset: start.offset + (appends[index]?.bytes ?? 0) }
    return { pending, start, end: at }
  })
}

/** null: no item is new, nothing is to be written. */
function appendOf(pending: Pending): WritableAppend | null {
  if (pending.kind === 'settle') return settledAppend(pending.settled)
  if (pending.kind === 'moved') return pending.move.append
  const { job, accepted, blocks, parts, bytes } = pending.admitted.encoded
  return accepted === 0 ? null : { kind: 'accepted', job, blocks, parts, bytes }
}

export const bytesOf = ({ tokens, ids, payloads, count }: ItemColumns): number =>
  tokens.byteLength + ids.byteLength + (payloads?.byteLength ?? 0) + 64 * count
