// The writing thread's queue: whatever was asked for while a commit was under way shares the next one.
// Appends alone are committed by a thread of LMDB's, while those that come are made ready here.
// While the disk fails appends are refused at once, settlements and jobs wait, and the disk is tried
// every probeIntervalMs. While less than the reserve is left appends are refused, everything else goes
// on, and the room is looked at as often.

import { FabricError } from '@fabric/protocol'
import { unpackItems } from './columns.js'
import { diskFailure, isTreeDamage } from './disk-errors.js'
import { DiskWatch } from './disk-watch.js'
import { type Environment, WHAT_TO_DO } from './environment.js'
import type { ItemColumns } from './item-block.js'
import type {
  AppendWrite,
  Failure,
  FromWriter,
  Request,
  StoreSettings,
  StoreSize,
  Write,
} from './messages.js'
import type { Admitted, Step, Writer } from './writer.js'

/** A transaction takes no further write beyond it: it bounds the wait of whoever comes behind. */
const TRANSACTION_BYTES_MAX = 8 * 2 ** 20
/** Relaxed: appended and not synced; beyond it appends wait for their commit as with `always`. */
const UNSYNCED_BYTES_MAX = 64 * 2 ** 20
/** How often the size of the file is told: to ask LMDB for it takes as long as to append some items. */
const SIZE_INTERVAL_MS = 100

interface Pending {
  readonly id: number
  readonly step: Step
  readonly bytes: number
  isAnswered: boolean
}

type Answer = { id: number; value?: unknown; failure?: Failure }

export class WriteLoop {
  readonly #writer: Writer
  readonly #settings: StoreSettings
  readonly #incoming: Request<Write>[] = []
  #pending: Pending[] = []
  #pendingBytes = 0
  #answers: Answer[] = []
  /** Packed items that have been read, to go back with the next answers. */
  #buffers: ArrayBuffer[] = []
  readonly #disk: DiskWatch
  #isScheduled = false
  /** The first of the pending are being committed by LMDB's thread. */
  #isCommitting = false
  #size: StoreSize
  #sizedAt = performance.now()
  /** Something was committed since the size was asked for. */
  #hasGrown = false
  #timer: NodeJS.Timeout | null = null
  #committedAt = 0
  #closing: number | null = null

  constructor(
    readonly environment: Environment,
    settings: StoreSettings,
    writer: Writer,
    readonly tell: (message: FromWriter, transfer?: ArrayBuffer[]) => void,
    readonly onClosed: () => void,
  ) {
    this.#writer = writer
    this.#size = writer.size
    this.#settings = settings
    const { diskReserveBytes, probeIntervalMs } = settings
    this.#disk = new DiskWatch(environment, diskReserveBytes, (health) =>
      tell({ kind: 'health', health }),
    )
    if (writer.hasWork) this.#schedule()
    else if (this.#disk.isShort) this.#scheduleIn(probeIntervalMs)
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

  /** A turn at the latest in so long; what comes earlier has its turn earlier. */
  #scheduleIn(delayMs: number): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#turn()
    }, delayMs)
  }

  #turn(): void {
    this.#disk.nextTurn()
    this.#admitAll()
    if (this.#isCommitting) {
      this.#report()
      return
    }
    const waitMs = this.#nextCommitInMs()
    if (waitMs > 0) {
      this.#report()
      this.#scheduleIn(waitMs)
      return
    }
    if (this.#pending.length > 0 || this.#disk.isFailing || this.#writer.hasWork) this.#commit()
    this.#report()
    if (!this.#isCommitting) this.#goOn()
  }

  /** No commit is under way: whatever there is to do has its turn. */
  #goOn(): void {
    if (this.#closing !== null && (this.#pending.length === 0 || this.#disk.isFailing)) {
      this.#close()
      return
    }
    if (this.#disk.isFailing) this.#scheduleIn(this.#settings.probeIntervalMs)
    else if (this.#pending.length > 0 || this.#writer.hasWork) this.#schedule()
    else if (this.#disk.isShort) this.#scheduleIn(this.#settings.probeIntervalMs)
    else if (this.#hasGrown) this.#scheduleIn(SIZE_INTERVAL_MS)
  }

  /** A failing disk is tried at intervals; relaxed, what was answered already waits for company. */
  #nextCommitInMs(): number {
    if (this.#closing !== null) return 0
    const sinceMs = performance.now() - this.#committedAt
    if (this.#disk.isFailing) return this.#settings.probeIntervalMs - sinceMs
    if (this.#settings.sync !== 'relaxed' || this.#pending.length === 0) return 0
    const isFull = this.#pendingBytes >= TRANSACTION_BYTES_MAX
    const isAnswered = !isFull && this.#pending.every((pending) => pending.isAnswered)
    return isAnswered ? this.#settings.syncIntervalMs - sinceMs : 0
  }

  /** Looks up what has come and queues it for the transaction. */
  #admitAll(): void {
    for (const { id, ask } of this.#incoming.splice(0)) {
      try {
        this.#admit(id, ask)
      } catch (error) {
        this.#answers.push({ id, failure: failureOf(error) })
      }
    }
  }

  #admit(id: number, ask: Write): void {
    switch (ask.kind) {
      case 'lookup':
        this.#buffers.push(ask.items)
        this.#answers.push({ id, value: this.#writer.lookup(unpackItems(ask.items)) })
        return
      case 'sequenceOf':
        this.#answers.push({ id, value: this.#writer.sequenceOf(ask.job, ask.id) })
        return
      case 'close':
        this.#closing = id
        return
      case 'append':
        this.#admitAppend(id, ask)
        return
      default: {
        const bytes = bytesOfOther(ask)
        const isFull = this.#pendingBytes + bytes > this.#settings.maxHeldResultBytes
        const { failure } = this.#disk
        if (failure !== null && isFull) throw new FabricError(failure.code, failure.message)
        this.#queue({ id, step: ask, bytes, isAnswered: false })
      }
    }
  }

  #admitAppend(id: number, { items, acceptedAtMs }: AppendWrite): void {
    this.#buffers.push(items)
    const columns = unpackItems(items)
    const bytes = bytesOf(columns)
    this.#disk.takeAppend(bytes)
    const step = this.#writer.admit(columns, acceptedAtMs)
    const isAnswered = this.#settings.sync === 'relaxed' && this.#pendingBytes < UNSYNCED_BYTES_MAX
    if (isAnswered) this.#answers.push({ id, value: step.codes })
    this.#queue({ id, step, bytes, isAnswered })
  }

  #queue(pending: Pending): void {
    this.#pending.push(pending)
    this.#pendingBytes += pending.bytes
  }

  #commit(): void {
    let bytes = 0
    let count = 0
    while (count < this.#pending.length && bytes < TRANSACTION_BYTES_MAX) {
      bytes += this.#pending[count].bytes
      count += 1
    }
    const batch = this.#pending.slice(0, count)
    if (!this.#disk.isFailing && this.#writer.areAppends(batch.map(({ step }) => step))) {
      void this.#commitBeside(batch)
      return
    }
    // What the last commit has made durable is not told later for this one.
    this.#report()
    try {
      this.#commitAll(batch)
      this.#pending.splice(0, count)
    } catch (error) {
      this.#onCommitFailed(batch, error)
    }
  }

  /** By LMDB's thread. What comes meanwhile is admitted behind the batch, which stays pending. */
  async #commitBeside(batch: readonly Pending[]): Promise<void> {
    this.#isCommitting = true
    try {
      const steps = batch.map(({ step }) => step as Admitted)
      const isAllAdmitted = batch.length === this.#pending.length
      const values = await this.#writer.commitAppends(steps, isAllAdmitted, () =>
        this.#injectFault(),
      )
      this.#pending.splice(0, batch.length)
      this.#onCommitted(batch, values)
    } catch (error) {
      this.#onCommitFailed(batch, error)
    }
    this.#isCommitting = false
    this.#turn()
  }

  #onCommitFailed(batch: readonly Pending[], error: unknown): void {
    this.#committedAt = performance.now()
    const failure = diskFailure(error, this.environment.path)
    if (failure !== null) this.#onDiskFailure(failure)
    else this.#commitSingly(batch, error)
  }

  #commitAll(batch: readonly Pending[]): void {
    const isAllAdmitted = batch.length === this.#pending.length
    const values = this.#writer.commit(
      batch.map(({ step }) => step),
      isAllAdmitted,
      () => this.#injectFault(),
    )
    this.#onCommitted(batch, values)
  }

  #onCommitted(batch: readonly Pending[], values: readonly unknown[]): void {
    this.#committedAt = performance.now()
    this.#hasGrown = true
    batch.forEach(({ id, bytes, isAnswered }, index) => {
      if (!isAnswered) this.#answers.push({ id, value: values[index] })
      this.#pendingBytes -= bytes
    })
    this.#disk.isWell()
  }

  /** Not the disk's fault: the one that cannot be done is answered so, the others are done. */
  #commitSingly(batch: readonly Pending[], error: unknown): void {
    this.#rollBack()
    if (batch.length <= 1) {
      if (batch.length === 0) throw error
      this.#pending.shift()
      this.#pendingBytes -= batch[0].bytes
      this.#rollBack()
      if (!batch[0].isAnswered) this.#answers.push({ id: batch[0].id, failure: failureOf(error) })
      return
    }
    for (const one of batch) {
      try {
        this.#commitAll([one])
        this.#pending.shift()
      } catch (cause) {
        const failure = diskFailure(cause, this.environment.path)
        if (failure !== null) {
          this.#onDiskFailure(failure)
          return
        }
        this.#commitSingly([one], cause)
      }
    }
  }

  /** Appends that were not answered are refused; everything else waits for the disk. */
  #onDiskFailure(failure: Failure): void {
    const kept: Pending[] = []
    for (const pending of this.#pending) {
      if (pending.isAnswered || !('codes' in pending.step)) kept.push(pending)
      else {
        this.#answers.push({ id: pending.id, failure })
        this.#pendingBytes -= pending.bytes
      }
    }
    this.#pending = kept
    this.#rollBack()
    this.#disk.fails(failure)
  }

  #rollBack(): void {
    const admitted = this.#pending.flatMap(({ step }) =>
      'codes' in step ? [step as Admitted] : [],
    )
    this.#writer.rollBack(admitted)
  }

  /** Also of an idle broker: that the disk has filled up, or has room again, is told before an append. */
  probe(): void {
    this.#disk.probe()
  }

  #injectFault(): void {
    const { faults } = this.#settings
    if (faults === null) return
    const delayMs = Atomics.load(faults, 1)
    if (delayMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delayMs)
    const code = Atomics.load(faults, 0)
    if (code !== 0) throw Object.assign(new Error(`injected errno ${code}`), { code })
  }

  #report(): void {
    const isSizeLate = this.#hasGrown && performance.now() - this.#sizedAt > SIZE_INTERVAL_MS
    if (isSizeLate) {
      this.#size = this.#writer.size
      this.#sizedAt = performance.now()
      this.#hasGrown = false
    }
    if (this.#answers.length === 0 && !isSizeLate) return
    const answers = this.#answers
    const buffers = this.#buffers
    this.#answers = []
    this.#buffers = []
    const ranges = this.#writer.ranges()
    this.tell({ kind: 'done', answers, ranges, size: this.#size, buffers }, buffers)
  }

  #close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    const failure: Failure = this.#disk.failure ?? {
      code: 'FABRIC_INTERNAL',
      message: 'the store was closed',
    }
    for (const { id, isAnswered } of this.#pending)
      if (!isAnswered) this.#answers.push({ id, failure })
    this.#pending = []
    this.#answers.push({ id: this.#closing!, value: null })
    this.#report()
    this.onClosed()
  }
}

export function failureOf(error: unknown): Failure {
  if (error instanceof FabricError) return { code: error.code, message: error.message }
  const { code, message } = error as { code?: unknown; message: string }
  if (isTreeDamage(code))
    return {
      code: 'FABRIC_STORE_DAMAGED',
      message: `the data file is damaged (${message}): ${WHAT_TO_DO}`,
    }
  return { code: 'FABRIC_INTERNAL', message: (error as Error).stack ?? String(error) }
}

const bytesOf = ({ tokens, ids, payloads, count }: ItemColumns): number =>
  tokens.byteLength + ids.byteLength + (payloads?.byteLength ?? 0) + 64 * count

const bytesOfOther = (write: Write): number =>
  write.kind === 'settle' ? write.records.byteLength + 64 * write.jobs.length : 256
