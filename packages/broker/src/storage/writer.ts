// All changes of the data file, many of them in one transaction: what stands here runs in the writing
// thread, one call at a time. What memory knows of the file (counters, jobs, ids) is changed with the
// transaction; when that is aborted, memory is read anew.
import { randomBytes } from 'node:crypto'
import { SUBMIT_ACCEPTED } from '@fabric/core'
import { FabricError } from '@fabric/protocol'
import { STATUSES } from '../results/log.js'
import { BlockMarks } from './block-marks.js'
import { Counters, type JobCounter } from './counters.js'
import { type Environment, sizeOf } from './environment.js'
import { DIGEST_KEY_BYTES } from './id-digest.js'
import { IdIndex } from './id-index.js'
import { encodeBlock, haveDeadline, type ItemColumns, rowsOfBlock } from './item-block.js'
import { JobRemoval } from './job-removal.js'
import { decodeJob, encodeJob } from './job-row.js'
import {
  blockKey,
  diskLength,
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

/** An append whose ids have been looked up. */
export interface Admitted {
  readonly write: AppendWrite
  readonly codes: Uint8Array
  readonly entries: Uint32Array
}

export type Step = Admitted | Exclude<Write, AppendWrite | { kind: 'lookup' } | { kind: 'close' }>

export class Writer {
  readonly #counters = new Counters()
  readonly #jobs = new Map<number, StoredJob>()
  readonly #ids: IdIndex
  readonly #removal: JobRemoval
  readonly #readResults: ReadResults
  readonly #blocks = new BlockCache(BLOCKS_CACHED)
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

  /** Looks the ids up; what is new is known from now on and must be applied or forgotten. */
  admit(write: AppendWrite): Admitted {
    if (!this.#jobs.has(write.items.job)) throw unknownJob(write.items.job)
    return { write, ...this.#ids.admit(write.items) }
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
      if (isAllAdmitted) this.#ids.maintain()
      this.#removal.step()
      this.#counters.write(tables.counters)
      this.#writeSequence()
      beforeCommit()
      return answered
    })
    for (const problem of this.#problems) this.onProblem(problem)
    return answers
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
    for (const { write, entries } of pending) this.#ids.remember(write.items.job, entries)
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

  #append({ write, codes, entries }: Admitted): Uint8Array {
    const { items, acceptedAtMs } = write
    const { job } = items
    if (!this.#jobs.has(job)) throw unknownJob(job)
    let accepted = 0
    let first = 0
    for (let i = 0; i < codes.length; i++) {
      if (codes[i] !== SUBMIT_ACCEPTED) continue
      if (accepted === 0) first = items.sequences[i]
      accepted += 1
      this.#lastSequence = items.sequences[i]
    }
    if (accepted === 0) return codes
    this.#counters.change(job).accepted += accepted
    for (const [model, lengths] of rowsByShape(items, codes)) {
      for (const [paddedLength, rows] of lengths)
        this.#putBlocks(items, { model, paddedLength }, rows, acceptedAtMs)
    }
    this.#ids.store(job, first, entries)
    return codes
  }

  #putBlocks(
    items: ItemColumns,
    shape: { model: number; paddedLength: number },
    rows: readonly number[],
    acceptedAtMs: number,
  ): void {
    const { tables } = this.environment
    for (let from = 0; from < rows.length; ) {
      const count = rowsOfBlock(items, rows, from)
      let tokens = 0
      for (let i = from; i < from + count; i++) tokens += items.lengths[rows[i]]
      const key = blockKey(items.job, shape, items.sequences[rows[from]])
      tables.items.put(key, encodeBlock(items, rows, from, count, acceptedAtMs))
      const timed = haveDeadline(items, rows, from, count)
      if (timed) tables.meta.put(META_TIMED, Buffer.from([1]))
      tables.marks.put(key, BlockMarks.of(count, tokens, timed).encode())
      this.#counters.add(items.job, shape, count, tokens)
      from += count
    }
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

/** Accepted rows by model and padded length, in order of arrival. */
function rowsByShape(items: ItemColumns, codes: Uint8Array): Map<number, Map<number, number[]>> {
  const models = new Map<number, Map<number, number[]>>()
  for (let i = 0; i < items.count; i++) {
    if (codes[i] !== SUBMIT_ACCEPTED) continue
    let lengths = models.get(items.model[i])
    if (lengths === undefined) {
      lengths = new Map()
      models.set(items.model[i], lengths)
    }
    const padded = diskLength(items.lengths[i])
    const rows = lengths.get(padded)
    if (rows === undefined) lengths.set(padded, [i])
    else rows.push(i)
  }
  return models
}
