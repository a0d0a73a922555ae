// The writing thread's queue: whatever was asked for while a commit was under way shares the next one.
// It also keeps the health: while the disk fails appends are refused at once, settlements and jobs
// wait, and the disk is tried every probeIntervalMs. While less than the reserve is left appends are
// refused, everything else goes on, and the room is looked at as often.

import { FabricError } from '@fabric/protocol'
import { diskFailure, isBelowReserve, isTreeDamage } from './disk-errors.js'
import { type Environment, WHAT_TO_DO } from './environment.js'
import type { Failure, FromWriter, Request, StoreSettings, Write } from './messages.js'
import type { StoreHealth } from './store.js'
import type { Admitted, Step, Writer } from './writer.js'

/** A transaction takes no further write beyond it: it bounds the wait of whoever comes behind. */
const TRANSACTION_BYTES_MAX = 8 * 2 ** 20
/** Relaxed: appended and not synced; beyond it appends wait for their commit as with `always`. */
const UNSYNCED_BYTES_MAX = 64 * 2 ** 20

interface Pending {
  readonly id: number
  readonly step: Step
  readonly bytes: number
  isAnswered: boolean
}

type DiskFailure = NonNullable<ReturnType<typeof diskFailure>>
type Answer = { id: number; value?: unknown; failure?: Failure }

export class WriteLoop {
  readonly #writer: Writer
  readonly #settings: StoreSettings
  readonly #incoming: Request<Write>[] = []
  #pending: Pending[] = []
  #pendingBytes = 0
  #answers: Answer[] = []
  /** Why the disk refuses writes. */
  #failure: DiskFailure | null = null
  /** The disk takes writes, but what is left of it is the reserve. */
  #shortage: DiskFailure | null = null
  #health: StoreHealth = { state: 'ok' }
  #isScheduled = false
  #timer: NodeJS.Timeout | null = null
  #committedAt = 0
  #closing: number | null = null

  constructor(
    readonly environment: Environment,
    settings: StoreSettings,
    writer: Writer,
    readonly tell: (message: FromWriter) => void,
    readonly onClosed: () => void,
  ) {
    this.#writer = writer
    this.#settings = settings
    this.#lookForRoom()
    if (writer.hasWork) this.#schedule()
    else if (this.#shortage !== null) this.#scheduleIn(settings.probeIntervalMs)
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
    if (this.#shortage !== null) this.#lookForRoom()
    this.#admitAll()
    const waitMs = this.#nextCommitInMs()
    if (waitMs > 0) {
      this.#report()
      this.#scheduleIn(waitMs)
      return
    }
    if (this.#pending.length > 0 || this.#failure !== null || this.#writer.hasWork) this.#commit()
    this.#report()
    if (this.#closing !== null && (this.#pending.length === 0 || this.#failure !== null)) {
      this.#close()
      return
    }
    if (this.#failure !== null) this.#scheduleIn(this.#settings.probeIntervalMs)
    else if (this.#pending.length > 0 || this.#writer.hasWork) this.#schedule()
    else if (this.#shortage !== null) this.#scheduleIn(this.#settings.probeIntervalMs)
  }

  /** A failing disk is tried at intervals; relaxed, what was answered already waits for company. */
  #nextCommitInMs(): number {
    if (this.#closing !== null) return 0
    const sinceMs = performance.now() - this.#committedAt
    if (this.#failure !== null) return this.#settings.probeIntervalMs - sinceMs
    if (this.#settings.sync !== 'relaxed' || this.#pending.length === 0) return 0
    const isAnswered = this.#pending.every((pending) => pending.isAnswered)
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
        this.#answers.push({ id, value: this.#writer.lookup(ask.items) })
        return
      case 'sequenceOf':
        this.#answers.push({ id, value: this.#writer.sequenceOf(ask.job, ask.id) })
        return
      case 'close':
        this.#closing = id
        return
      case 'append': {
        if (this.#failure === null) this.#lookForRoom()
        const refusal = this.#failure ?? this.#shortage
        if (refusal !== null) throw refusalOf(refusal)
        const step = this.#writer.admit(ask)
        const isAnswered =
          this.#settings.sync === 'relaxed' && this.#pendingBytes < UNSYNCED_BYTES_MAX
        if (isAnswered) this.#answers.push({ id, value: step.codes })
        this.#queue({ id, step, bytes: bytesOf(ask), isAnswered })
        return
      }
      default: {
        const bytes = bytesOf(ask)
        const isFull = this.#pendingBytes + bytes > this.#settings.maxHeldResultBytes
        if (this.#failure !== null && isFull) throw refusalOf(this.#failure)
        this.#queue({ id, step: ask, bytes, isAnswered: false })
      }
    }
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
    try {
      this.#commitAll(batch)
      this.#pending.splice(0, count)
    } catch (error) {
      this.#committedAt = performance.now()
      const failure = diskFailure(error, this.environment.path)
      if (failure !== null) this.#onDiskFailure(failure)
      else this.#commitSingly(batch, error)
    }
  }

  #commitAll(batch: readonly Pending[]): void {
    const isAllAdmitted = batch.length === this.#pending.length
    const values = this.#writer.commit(
      batch.map(({ step }) => step),
      isAllAdmitted,
      () => this.#injectFault(),
    )
    this.#committedAt = performance.now()
    batch.forEach(({ id, bytes, isAnswered }, index) => {
      if (!isAnswered) this.#answers.push({ id, value: values[index] })
      this.#pendingBytes -= bytes
    })
    this.#failure = null
    this.#tellHealth()
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
    this.#failure = failure
    this.#tellHealth()
  }

  #rollBack(): void {
    const admitted = this.#pending.flatMap(({ step }) =>
      'codes' in step ? [step as Admitted] : [],
    )
    this.#writer.rollBack(admitted)
  }

  /** Also of an idle broker: that the disk has filled up, or has room again, is told before an append. */
  probe(): void {
    if (this.#failure === null) this.#lookForRoom()
  }

  #lookForRoom(): void {
    const { path } = this.environment
    this.#shortage = isBelowReserve(this.environment, this.#settings.diskReserveBytes)
      ? {
          code: 'FABRIC_DISK_FULL',
          message: `less than diskReserveBytes are left for ${path}`,
        }
      : null
    this.#tellHealth()
  }

  #tellHealth(): void {
    const failure = this.#failure ?? this.#shortage
    const health: StoreHealth =
      failure === null ? { state: 'ok' } : ({ state: 'degraded', ...failure } as StoreHealth)
    if (JSON.stringify(health) === JSON.stringify(this.#health)) return
    this.#health = health
    this.tell({ kind: 'health', health })
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
    if (this.#answers.length === 0) return
    this.tell({
      kind: 'done',
      answers: this.#answers,
      ranges: this.#writer.ranges(),
      size: this.#writer.size,
    })
    this.#answers = []
  }

  #close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    const failure: Failure = this.#failure ?? {
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

const refusalOf = ({ code, message }: DiskFailure) => new FabricError(code, message)

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

function bytesOf(write: Write): number {
  if (write.kind === 'append') {
    const { tokens, ids, payloads, count } = write.items
    return tokens.byteLength + ids.byteLength + (payloads?.byteLength ?? 0) + 64 * count
  }
  return write.kind === 'settle' ? write.records.byteLength + 64 * write.jobs.length : 256
}
