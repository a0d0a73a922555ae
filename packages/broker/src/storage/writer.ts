// All changes of the data file, many of them in one transaction: what stands here runs in the writing
// thread, one call at a time. What memory knows of the file (counters, jobs, ids) is changed with the
// transaction; when that is aborted, memory is read anew.
import { randomBytes } from 'node:crypto'
import { FabricError } from '@fabric/protocol'
import { STATUSES } from '../results/log.js'
import { BufferPool } from './buffer-pool.js'
import { Counters, type JobCounter } from './counters.js'
import { type Environment, sizeOf } from './environment.js'
import { DIGEST_KEY_BYTES } from './id-digest.js'
import { IdIndex } from './id-index.js'
import { type EncodedAppend, encodeAppend } from './item-append.js'
import type { ItemColumns } from './item-block.js'
import { JobRemoval } from './job-removal.js'
import { decodeJob, encodeJob } from './job-row.js'
import {
  FORMAT_VERSION,
  jobKey,
  META_FORMAT,
  META_HASH_KEY,
  META_LAST_JOB,
  META_SEQUENCE,
  META_TIMED,
} from './layout.js'
import type { AppendWrite, ResultRange, StoreSettings, StoreSize, Write } from './messages.js'
import { ReadResults } from './read-results.js'
import { recountJob } from './recount.js'
import { setAside } from './set-aside.js'
import { BlockCache, Settling } from './settling.js'
import type { RecoveredJob, Recovery, StoredDeadline, StoredJob, StoreProblem } from './store.js'
import { deadlinesIn } from './stored-deadlines.js'

/** Of 64 KiB, mostly. */
const BLOCKS_CACHED = 64

/** Encoded appends whose memory waits for the next ones. */
const POOL_BYTES_MAX = 32 * 2 ** 20

/** An append whose ids have been looked up, and whose blocks are ready to be put. */
export interface Admitted {
  readonly codes: Uint8Array
  readonly entries: Uint32Array
  readonly encoded: EncodedAppend
}

export type Step = Admitted | Exclude<Write, AppendWrite | { kind: 'lookup' } | { kind: 'close' }>

export class Writer {
  readonly #counters = new Counters()
  readonly #jobs = new Map<number, StoredJob>()
  readonly #ids: IdIndex
  readonly #removal: JobRemoval
  readonly #readResults: ReadResults
  readonly #blocks = new BlockCache(BLOCKS_CACHED)
  readonly #pool = new BufferPool(POOL_BYTES_MAX)
  #lastSequence = 0
  #lastJob = -1
  #ranges = new Map<number, ResultRange>()
  /** Told only when the transaction that set something aside has been committed. */
  #problems: StoreProblem[] = []

  constructor(
    readonly environment: Environment,
    settings: Pick<StoreSettings, 'maxKeptResultBytes'>,
    readonly onProblem: (problem: StoreProblem) => void,
    recentIdsMax?: number,
  ) {
    const { tables } = environment
    this.#prepare()
    this.#ids = new IdIndex(
      tables.ids,
      tables.filters,
      tables.meta.getBinary(META_HASH_KEY)!,
      (table, key) =>
        onProblem({
          message: `a page of ids is damaged (${table} ${key.toString('hex')}): submissions that repeat an id of it are taken for new`,
          lost: null,
        }),
      recentIdsMax,
    )
    this.#removal = new JobRemoval(tables)
    this.#readResults = new ReadResults(tables.results, settings.maxKeptResultBytes)
    this.#load()
  }

  /** The state on disk, for the start. */
  recovery(problems: readonly string[]): Recovery {
    const jobs: RecoveredJob[] = []
    const { tables } = this.environment
    // Only a file that ever held a deadline is looked through for them.
    const deadlines = tables.meta.getBinary(META_TIMED) === undefined ? null : deadlinesIn(tables)
    for (const job of this.#jobs.values()) {
      const ofJob = deadlines?.get(job.number) ?? []
      jobs.push(recovered(job, this.#counters.job(job.number), ofJob))
    }
    return { jobs, lastSequence: this.#lastSequence, lastJob: this.#lastJob, problems }
  }

  get size(): StoreSize {
    return sizeOf(this.environment)
  }

  /**
   * Looks the ids up and encodes what is new, which is known from now on and must be committed or
   * forgotten. The columns have been read when it returns.
   */
  admit(items: ItemColumns, acceptedAtMs: number): Admitted {
    if (!this.#jobs.has(items.job)) throw unknownJob(items.job)
    const admitted = this.#ids.admit(items)
    const { codes, entries } = admitted
    return { codes, entries, encoded: encodeAppend(items, admitted, acceptedAtMs, this.#pool) }
  }

  lookup(items: ItemColumns): Uint8Array {
    return this.#ids.lookup(items)
  }

  sequenceOf(job: number, id: Uint8Array): number {
    return this.#jobs.has(job) ? this.#ids.sequenceOf(job, id) : -1
  }

  /**
   * One transaction, durable when this returns. Throws what LMDB threw; then nothing has changed.
   * @param isAllAdmitted whether these are all the appends that were admitted.
   */
  commit(steps: readonly Step[], isAllAdmitted: boolean, beforeCommit: () => void): unknown[] {
    const { root, tables } = this.environment
    this.#problems = []
    this.#ranges = new Map()
    const answers = root.transactionSync(() => {
      const settling = new Settling(
        tables,
        this.#counters,
        this.#blocks,
        (job) => this.#jobs.has(job),
        (key) => this.#setAside('items', key, settling),
      )
      const answered = steps.map((step) => this.#apply(step, settling))
      settling.write()
      this.#readResults.trim(this.#counters)
      this.#ids.flushSome(isAllAdmitted)
      this.#ids.mergeSome()
      this.#removal.step()
      this.#counters.write(tables.counters)
      this.#writeSequence()
      beforeCommit()
      return answered
    })
    for (const problem of this.#problems) this.onProblem(problem)
    this.#release(steps)
    return answers
  }

  /** Whether `commitAppends` may take the steps: nothing in them reads what they, or a step of work, write. */
  areAppends(steps: readonly Step[]): steps is readonly Admitted[] {
    if (steps.length === 0 || this.#removal.hasWork || this.#ids.isMerging) return false
    return steps.every((step) => 'codes' in step && this.#jobs.has(step.encoded.job))
  }

  /**
   * The same for appends alone, on a thread of LMDB's, so that this one can make the next ones ready.
   * Nothing else may be committed until it resolves, and what it rejects with leaves memory to be read
   * anew, as with `commit`.
   */
  async commitAppends(
    steps: readonly Admitted[],
    isAllAdmitted: boolean,
    beforeCommit: () => void,
  ): Promise<Uint8Array[]> {
    const { root, tables } = this.environment
    this.#ranges = new Map()
    beforeCommit()
    // What threw in here would be committed as far as it had come: it only puts what is ready.
    const committed = root.batch(() => {
      for (const step of steps) this.#append(step)
      this.#ids.flushSome(isAllAdmitted)
      this.#counters.write(tables.counters)
      this.#writeSequence()
    })
    await committed.catch(rethrowCommitError)
    this.#release(steps)
    return steps.map(({ codes }) => codes)
  }

  /** Work that waits for a transaction of its own when nothing is written. */
  get hasWork(): boolean {
    return this.#removal.hasWork || this.#ids.hasWork
  }

  /** After an abort. @param pending appends that were admitted and are not applied yet. */
  rollBack(pending: readonly Admitted[]): void {
    this.#ids.forget()
    // It may hold a block that was never committed, and its sequences may come again.
    this.#blocks.clear()
    this.#load()
    for (const { encoded, entries } of pending) this.#ids.remember(encoded.job, entries)
  }

  /** Of jobs whose results the last commit changed. */
  ranges(): ResultRange[] {
    return Array.from(this.#ranges.keys(), (job) => {
      const { firstOffset, endOffset } = this.#counters.job(job)
      return { job, firstOffset, endOffset }
    })
  }

  #apply(step: Step, settling: Settling): unknown {
    if ('codes' in step) return this.#append(step)
    switch (step.kind) {
      case 'settle':
        for (const job of new Set(step.jobs)) this.#noteRange(job)
        return settling.settle(step)
      case 'putJob':
        return this.#putJob(step.job)
      case 'deleteJob':
        return this.#deleteJob(step.number)
      case 'resultsRead':
        if (!this.#jobs.has(step.job)) return 0
        this.#noteRange(step.job)
        return this.#readResults.read(this.#counters.change(step.job), step.offset)
      case 'commit':
        return null
      case 'setAside':
        return this.#setAside(step.table, Buffer.from(step.key), settling)
    }
  }

  #append({ codes, entries, encoded }: Admitted): Uint8Array {
    const { job, accepted, first, last, blocks } = encoded
    if (!this.#jobs.has(job)) throw unknownJob(job)
    if (accepted === 0) return codes
    const { tables } = this.environment
    this.#lastSequence = last
    this.#counters.change(job).accepted += accepted
    for (const { shape, count, tokens, haveDeadline, key, value, marks } of blocks) {
      tables.items.put(key, value)
      tables.marks.put(key, marks)
      if (haveDeadline) tables.meta.put(META_TIMED, Buffer.from([1]))
      this.#counters.add(job, shape, count, tokens)
    }
    this.#ids.store(job, first, entries)
    return codes
  }

  /** Committed blocks are read from the file. */
  #release(steps: readonly Step[]): void {
    for (const step of steps)
      if ('codes' in step && step.encoded.buffer !== null) this.#pool.give(step.encoded.buffer)
  }

  #putJob(job: StoredJob): void {
    this.environment.tables.jobs.put(jobKey(job.number), encodeJob(job))
    this.#jobs.set(job.number, job)
    this.#counters.change(job.number)
    if (job.number > this.#lastJob) this.#writeLastJob(job.number)
  }

  #writeLastJob(number: number): void {
    this.#lastJob = number
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(number)
    this.environment.tables.meta.put(META_LAST_JOB, bytes)
  }

  /** The row becomes a tombstone at once; what belongs to the job goes piece by piece. */
  #deleteJob(number: number): void {
    if (!this.#jobs.delete(number)) return
    this.environment.tables.jobs.put(jobKey(number), encodeJob(null))
    this.#counters.forget(number)
    this.#ids.drop(number)
    this.#readResults.forget(number)
    this.#removal.add(number)
  }

  #setAside(table: 'items' | 'results', key: Buffer, settling: Settling): void {
    settling.forget(key)
    const problem = setAside(this.environment.tables, this.#counters, table, key)
    if (problem !== null) this.#problems.push(problem)
  }

  #noteRange(job: number): void {
    this.#ranges.set(job, { job, firstOffset: 0, endOffset: 0 })
  }

  #writeSequence(): void {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(this.#lastSequence)
    this.environment.tables.meta.put(META_SEQUENCE, bytes)
  }

  /** A new file gets its format and the key of its digests. */
  #prepare(): void {
    const { root, tables } = this.environment
    if (tables.meta.getBinary(META_FORMAT) !== undefined) return
    root.transactionSync(() => {
      const version = Buffer.alloc(4)
      version.writeUInt32LE(FORMAT_VERSION)
      tables.meta.put(META_FORMAT, version)
      tables.meta.put(META_HASH_KEY, randomBytes(DIGEST_KEY_BYTES))
    })
  }

  #load(): void {
    const { tables } = this.environment
    const damagedJobs = new Set<number>()
    this.#jobs.clear()
    this.#removal.clear()
    this.#readResults.clear()
    this.#lastSequence = tables.meta.getBinary(META_SEQUENCE)?.readDoubleLE(0) ?? 0
    this.#lastJob = tables.meta.getBinary(META_LAST_JOB)?.readDoubleLE(0) ?? -1
    const recount = new Set<number>()
    this.#counters.load(tables.counters, (key) => recount.add(key.readUInt32BE(0)))
    for (const { key, value } of tables.jobs.getRange({})) {
      const number = key.readUInt32BE(0)
      const job = decodeJob(value)
      if (job === 'damaged') damagedJobs.add(number)
      else if (job === null) this.#removal.add(number)
      else this.#jobs.set(number, job)
    }
    for (const number of damagedJobs)
      this.onProblem({
        message: `job ${number} cannot be read (table jobs): it is left out; its items and results stay in the file, \`fabric-broker dump\` shows them`,
        lost: null,
      })
    for (const number of recount) this.#recount(number)
    this.#readResults.load(this.#counters)
  }

  #recount(number: number): void {
    this.#counters.replace(recountJob(this.environment.tables, number))
    this.onProblem({
      message: `counts of job ${number} could not be read (table counters): they were made anew from its items and results`,
      lost: null,
    })
  }
}

const unknownJob = (job: number) =>
  new FabricError('FABRIC_NOT_FOUND', `no job ${job} in the store`)

function recovered(
  job: StoredJob,
  counter: JobCounter,
  deadlines: readonly StoredDeadline[],
): RecoveredJob {
  return {
    ...job,
    accepted: counter.accepted,
    settled: Object.fromEntries(
      STATUSES.map((status) => [status, counter[status]]),
    ) as RecoveredJob['settled'],
    lost: counter.lost,
    deadlines,
    shapes: Array.from(counter.shapes.values(), ({ shape, items, tokens }) => ({
      ...shape,
      items,
      tokens,
    })),
    results: {
      firstOffset: counter.firstOffset,
      endOffset: counter.endOffset,
      readOffset: counter.readOffset,
      unreadBytes: counter.unreadBytes,
    },
  }
}

/** LMDB's thread tells why it could not commit behind a promise of its own. */
async function rethrowCommitError(error: Error & { commitError?: Promise<never> }): Promise<never> {
  if (error.commitError !== undefined) await error.commitError
  throw error
}
