// The writing thread's turns. Accepted items and settlements are written to the log, as many at once as came
// while the last ones were being written, and answered; the index takes them in later. Everything else is
// answered when a transaction of the index has it, and all that waits shares one.
//
// While the disk fails items are refused at once, settlements and jobs wait, and the disk is tried every
// probeIntervalMs. While less than the reserve is left appends are refused, everything else goes on, and
// the room is looked at as often.

import { FabricError } from '@fabric/protocol'
import { Alarm } from './alarm.js'
import { Answers, SIZE_INTERVAL_MS } from './answers.js'
import { unpackItems } from './columns.js'
import { diskFailure } from './disk-errors.js'
import { DiskWatch } from './disk-watch.js'
import type { Environment } from './environment.js'
import { withinGate } from './exit-gate.js'
import { failureOf } from './failure.js'
import { passFaultPoint } from './fault-point.js'
import { bytesOf, LogQueue } from './log-queue.js'
import type { Failure, FromWriter, Request, SettleWrite, StoreSettings, Write } from './messages.js'
import { settledColumns } from './settled-columns.js'
import { BorrowedBuffers, type LentBuffer } from './shared-buffers.js'
import { type PendingStep, StepQueue } from './step-queue.js'
import { type Step, unknownJob, type Writer } from './writer.js'

/** How often it takes in what there is when nobody asks for it earlier. */
const INDEX_INTERVAL_MS = 100
/** Relaxed: answered and not written; beyond it appends wait for their sync as with `always`. What waits longer has left the processor's cache. */
const UNSYNCED_BYTES_MAX = 4 * 2 ** 20
/** Some milliseconds of work. */
const ADMITTED_BYTES_PER_TURN = 512 * 1024

export class WriteLoop {
  readonly #writer: Writer
  readonly #settings: StoreSettings
  readonly #incoming: Request<Write>[] = []
  readonly #log: LogQueue
  readonly #steps = new StepQueue()
  readonly #buffers = new BorrowedBuffers()
  /** Of settlements that the next transaction takes in. */
  readonly #settled: LentBuffer[] = []
  readonly #answers: Answers
  readonly #disk: DiskWatch
  readonly #alarm = new Alarm(() => this.#turn())
  #isScheduled = false
  #writtenAt = 0
  #triedAt = 0
  #indexedAt = 0
  #closing: number | null = null

  constructor(
    readonly environment: Environment,
    settings: StoreSettings,
    writer: Writer,
    readonly tell: (message: FromWriter) => void,
    readonly onClosed: () => void,
  ) {
    this.#writer = writer
    this.#log = new LogQueue(writer, ({ borrowed }) => {
      if (borrowed !== null) this.#buffers.close(borrowed)
    })
    this.#answers = new Answers(writer, this.#buffers, tell)
    this.#settings = settings
    const { diskReserveBytes, probeIntervalMs } = settings
    this.#disk = new DiskWatch(environment, diskReserveBytes, (health) =>
      tell({ kind: 'health', health }),
    )
    if (writer.hasWork || writer.compaction.isDue(false)) this.#schedule()
    else if (this.#disk.isShort) this.#alarm.setIn(probeIntervalMs)
  }

  take(request: Request<Write>): void {
    this.#incoming.push(request)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#turn()
    })
  }

  #turn(): void {
    this.#disk.nextTurn()
    this.#admitSome()
    this.#takeWritten()
    this.#move()
    this.#writeLog()
    this.#commitWhenDue()
    this.#answers.send()
    this.#goOn()
  }

  /** All that was asked for is in the index. */
  get #isIdle(): boolean {
    const { isEmpty, logged } = this.#log
    const isIndexed = logged.length === 0 && !this.#writer.hasUnindexed
    return isEmpty && isIndexed && this.#steps.isEmpty
  }

  #goOn(): void {
    const { isEmpty, isWriting } = this.#log
    if (this.#closing !== null && (this.#isIdle || (this.#disk.isFailing && !isWriting))) {
      this.#close()
      return
    }
    // When the write is done there is a turn.
    if (isWriting || this.#disk.isFailing) return
    if (this.#isMoveDue) this.#schedule()
    else if (!isEmpty || !this.#steps.isEmpty || this.#writer.hasWork) this.#scheduleUnlessWaiting()
    else if (this.#disk.isShort) this.#alarm.setIn(this.#settings.probeIntervalMs)
    else if (this.#answers.hasGrown) this.#alarm.setIn(SIZE_INTERVAL_MS)
  }

  /** Relaxed, what was answered already waits for company. */
  #scheduleUnlessWaiting(): void {
    const waitMs = this.#nextWriteInMs()
    if (waitMs <= 0 || !this.#steps.isEmpty) this.#schedule()
    else this.#alarm.setIn(waitMs)
  }

  #nextWriteInMs(): number {
    const mayWait = this.#settings.sync === 'relaxed' && this.#log.mayWait
    if (!mayWait || this.#closing !== null || !this.#steps.isEmpty) return 0
    return this.#settings.syncIntervalMs - (performance.now() - this.#writtenAt)
  }

  /** Looks up what has come and queues it; not so much that the log has nothing to write meanwhile. */
  #admitSome(): void {
    const before = this.#log.bytes
    let count = 0
    while (count < this.#incoming.length && this.#log.bytes - before < ADMITTED_BYTES_PER_TURN) {
      const { id, ask } = this.#incoming[count]
      count += 1
      try {
        this.#admit(id, ask)
      } catch (error) {
        this.#answers.push({ id, failure: failureOf(error) })
      }
    }
    this.#incoming.splice(0, count)
    if (this.#incoming.length > 0) this.#schedule()
  }

  #admit(id: number, ask: Write): void {
    switch (ask.kind) {
      case 'lookup':
        this.#answers.push({ id, value: this.#lookup(ask.items) })
        return
      case 'sequenceOf':
        this.#answers.push({ id, value: this.#writer.sequenceOf(ask.job, ask.id) })
        return
      case 'close':
        this.#closing = id
        return
      case 'append':
        this.#admitAppend(id, ask.items, ask.acceptedAtMs)
        return
      case 'settle':
        this.#admitSettle(id, ask)
        return
      default:
        this.#admitStep(id, ask)
    }
  }

  #lookup(lent: LentBuffer): Uint8Array {
    try {
      return this.#writer.lookup(unpackItems(this.#buffers.open(lent)))
    } finally {
      this.#buffers.close(lent)
    }
  }

  #admitAppend(id: number, lent: LentBuffer, acceptedAtMs: number): void {
    let isBorrowing = false
    try {
      const items = unpackItems(this.#buffers.open(lent))
      if (this.#steps.isEnding(items.job)) throw unknownJob(items.job)
      const bytes = bytesOf(items)
      this.#disk.takeAppend(bytes)
      const admitted = this.#writer.admit(items, acceptedAtMs)
      const isRelaxed = this.#settings.sync === 'relaxed'
      const isAnswered = isRelaxed && this.#log.bytes < UNSYNCED_BYTES_MAX
      if (isAnswered) this.#answers.push({ id, value: admitted.codes })
      isBorrowing = admitted.encoded.isBorrowing
      const borrowed = isBorrowing ? lent : null
      this.#log.add({ kind: 'items', id, admitted, bytes, isAnswered, borrowed })
    } finally {
      if (!isBorrowing) this.#buffers.close(lent)
    }
  }

  #admitSettle(id: number, { count, bytes, items: borrowed }: SettleWrite): void {
    const { failure } = this.#disk
    const memory = this.#buffers.open(borrowed)
    if (failure !== null && this.#log.bytes + bytes > this.#settings.maxHeldResultBytes) {
      this.#buffers.close(borrowed)
      throw new FabricError(failure.code, failure.message)
    }
    this.#log.add({ kind: 'settle', id, bytes, settled: { count, bytes, memory }, borrowed })
  }

  #admitStep(id: number, step: Step): void {
    if (step.kind === 'commit' && this.#isIdle) {
      this.#answers.push({ id, value: null })
      return
    }
    const { failure } = this.#disk
    if (failure !== null && step.kind === 'commit')
      throw new FabricError(failure.code, failure.message)
    this.#steps.add({ id, step, behind: this.#log.added })
  }

  /** Not while the room may be needed for what was answered. */
  get #isMoveDue(): boolean {
    const { isFailing, isShort } = this.#disk
    return this.#closing === null && !isFailing && !isShort && this.#log.isMoveDue
  }

  /** A step of compaction, which waits behind what others have asked for. */
  #move(): void {
    const { compaction } = this.#writer
    if (this.#isMoveDue && this.#disk.mayTake(compaction.stepBytes))
      this.#log.addMoves(compaction.step())
  }

  /** What comes while the kernel writes is admitted meanwhile, and shares the next write. */
  #writeLog(): void {
    const { isWriting, hasWaiting } = this.#log
    if (isWriting || !hasWaiting || this.#disk.isFailing || this.#nextWriteInMs() > 0) return
    try {
      passFaultPoint(this.#settings.faults)
    } catch (error) {
      this.#onWriteFailed(error)
      return
    }
    this.#writtenAt = performance.now()
    const written = this.#log.writeNext()
    written.then(
      () => this.#turn(),
      (error) => {
        this.#onWriteFailed(error)
        this.#turn()
      },
    )
  }

  /** What is durable is answered, and is in memory what it will be in the index. */
  #takeWritten(): void {
    for (let next = this.#log.written; next !== null; next = this.#log.written) {
      const { pending } = next
      this.#answers.hasGrown = true
      if (pending.kind !== 'settle') {
        this.#log.take()
        if (pending.kind === 'items' && !pending.isAnswered)
          this.#answers.push({ id: pending.id, value: pending.admitted.codes })
        continue
      }
      const columns = settledColumns(pending.settled)
      if (!this.#writer.knows(columns) && !this.#commit([])) return
      const value = this.#writer.settle(columns)
      this.#settled.push(pending.borrowed)
      this.#log.take()
      this.#answers.push({ id: pending.id, value })
    }
  }

  #onWriteFailed(error: unknown): void {
    const { message } = error as Error
    this.#triedAt = performance.now()
    this.#onDiskFailure(
      diskFailure(error, this.#writer.log.path) ?? { code: 'FABRIC_DISK_FAILED', message },
    )
  }

  /** A failing disk is tried at intervals. */
  #commitWhenDue(): void {
    const { isFailing } = this.#disk
    if (isFailing) {
      const waitMs = this.#settings.probeIntervalMs - (performance.now() - this.#triedAt)
      if (waitMs > 0 && this.#closing === null) this.#alarm.setIn(waitMs)
      else this.#commit(this.#steps.ready(this.#log.taken))
      return
    }
    const steps = this.#steps.ready(this.#log.taken)
    const waitMs = this.#nextIndexInMs()
    if (steps.length > 0 || waitMs <= 0) this.#commit(steps)
    else if (waitMs < Number.POSITIVE_INFINITY) this.#alarm.setIn(waitMs)
  }

  #nextIndexInMs(): number {
    const { logged, isIndexDue, isEmpty } = this.#log
    if (isEmpty && this.#writer.hasWork) return 0
    if (logged.length === 0 && !this.#writer.hasUnindexed) return Number.POSITIVE_INFINITY
    if (isIndexDue || (this.#closing !== null && isEmpty)) return 0
    // What is settled gives its room back then.
    if (this.#disk.isShort) return 0
    return INDEX_INTERVAL_MS - (performance.now() - this.#indexedAt)
  }

  /** @param steps the first of those that wait. @returns false when the disk, or one of them, has failed. */
  #commit(steps: readonly PendingStep[]): boolean {
    // What the log has made durable is not told later for this.
    this.#answers.send()
    this.#triedAt = performance.now()
    try {
      if (this.#disk.isFailing) this.#writer.log.probe()
      this.#commitAll(steps)
      return true
    } catch (error) {
      const failure = diskFailure(error, this.environment.path)
      if (failure !== null) this.#onDiskFailure(failure)
      else this.#commitSingly(steps, error)
      return false
    }
  }

  #commitAll(steps: readonly PendingStep[]): void {
    const { logged, position } = this.#log
    const { exitFlags, faults } = this.#settings
    const asked = steps.map(({ step }) => step)
    const values = withinGate(exitFlags, () =>
      this.#writer.commit(logged, asked, position, () => passFaultPoint(faults)),
    )
    this.#answers.hasGrown = true
    this.#log.indexed()
    for (const borrowed of this.#settled.splice(0)) this.#buffers.close(borrowed)
    this.#indexedAt = performance.now()
    steps.forEach(({ id }, index) => {
      this.#answers.push({ id, value: values[index] })
    })
    this.#steps.drop(steps)
    this.#disk.isWell()
  }

  /** Not the disk's fault: the one that cannot be done is answered so, the others are done. */
  #commitSingly(steps: readonly PendingStep[], error: unknown): void {
    this.#rollBack()
    // That appends cannot be taken in is a defect: the thread ends, and says what of.
    if (steps.length === 0) throw error
    for (const one of [null, ...steps]) {
      try {
        this.#commitAll(one === null ? [] : [one])
      } catch (cause) {
        const failure = diskFailure(cause, this.environment.path)
        if (failure !== null) {
          this.#onDiskFailure(failure)
          return
        }
        this.#rollBack()
        if (one === null) throw cause
        this.#answers.push({ id: one.id, failure: failureOf(cause) })
        this.#steps.drop([one])
      }
    }
  }

  /** Appends that were not answered are refused; everything else waits for the disk. */
  #onDiskFailure(failure: Failure): void {
    for (const { id } of this.#log.refuse()) this.#answers.push({ id, failure })
    // Who waits for the index, to read, asks again.
    for (const { id } of this.#steps.takeReaders()) this.#answers.push({ id, failure })
    this.#rollBack()
    this.#disk.fails(failure)
    this.#alarm.setIn(this.#settings.probeIntervalMs)
  }

  #rollBack(): void {
    this.#writer.rollBack(this.#log.unindexed())
  }

  /** Also of an idle broker: that the disk has filled up, or has room again, is told before an append. */
  probe(): void {
    this.#disk.probe()
  }

  #close(): void {
    this.#alarm.clear()
    const failure: Failure = this.#disk.failure ?? {
      code: 'FABRIC_INTERNAL',
      message: 'the store was closed',
    }
    for (const pending of this.#log.giveUp())
      if (pending.kind === 'settle' || !pending.isAnswered)
        this.#answers.push({ id: pending.id, failure })
    for (const { id } of this.#steps.takeAll()) this.#answers.push({ id, failure })
    this.#writer.close()
    this.#answers.push({ id: this.#closing!, value: null })
    this.#answers.send()
    this.onClosed()
  }
}
