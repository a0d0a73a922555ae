// All changes of the index, many of them in one transaction: what stands here runs in the writing thread,
// one call at a time. What memory knows of the index (counters, jobs, ids, what is left in each segment) is
// changed with the transaction; when that is aborted, memory is read anew.
//
// Accepted items and settlements are durable once they are in the log (log-writer.ts); the index takes them in
// with a later transaction, many of them at once, which also notes how far in the log it has come.
// Everything else is durable with its transaction.
import { FabricError } from '@fabric/protocol'
import type { Admitted, Logged } from './admitted.js'
import type { LoggedBlock } from './append-header.js'
import { BlockRow } from './block-row.js'
import { BufferPool } from './buffer-pool.js'
import { Compaction } from './compaction.js'
import { Counters } from './counters.js'
import { type Environment, sizeOf } from './environment.js'
import { IdIndex } from './id-index.js'
import { concatWords } from './id-run.js'
import { encodeAppend } from './item-append.js'
import type { ItemColumns } from './item-block.js'
import { JobRemoval } from './job-removal.js'
import { JobTable } from './job-table.js'
import { blockKey, META_SEQUENCE, META_TIMED } from './layout.js'
import { type LogPosition, readLogPosition, writeLogPosition } from './log-position.js'
import { loggedOf } from './log-recovery.js'
import { endOf, startOf, tailOfLog } from './log-tail.js'
import { type LogWriter, openLog } from './log-writer.js'
import type {
  AppendWrite,
  ResultRange,
  SettleWrite,
  StoreSettings,
  StoreSize,
  Write,
} from './messages.js'
import { readNumber, writeNumber } from './meta-number.js'
import { prepareStore } from './new-store.js'
import { ReadResults } from './read-results.js'
import { recountJob } from './recount.js'
import { recoveredJobs } from './recovered-job.js'
import { SegmentRemoval } from './segment-removal.js'
import { missingSegment, Segments } from './segments.js'
import { setAside } from './set-aside.js'
import type { SettledColumns } from './settled-columns.js'
import { BlockCache, Settling } from './settling.js'
import type { Recovery, StoredJob, StoreProblem } from './store.js'

/** Their heads, some hundred bytes each mostly. */
const BLOCKS_CACHED = 64
/** Encoded appends whose memory waits for the next ones. */
const POOL_BYTES_MAX = 32 * 2 ** 20
/** Of the log that a start takes into the index with one transaction. */
const RECOVERY_BYTES = 16 * 2 ** 20

export type Step = Exclude<
  Write,
  AppendWrite | SettleWrite | { kind: 'lookup' } | { kind: 'sequenceOf' } | { kind: 'close' }
>

export class Writer {
  readonly #counters = new Counters()
  readonly #jobs: JobTable
  readonly #ids: IdIndex
  readonly #removal: JobRemoval
  readonly #readResults: ReadResults
  readonly #blocks: BlockCache
  readonly #pool = new BufferPool(POOL_BYTES_MAX)
  #lastSequence = 0
  #settling: Settling | null = null
  /** What `#settling` has settled. */
  #settled: SettledColumns[] = []
  /** Jobs whose results have changed since it was asked. */
  readonly #changed = new Set<number>()
  /** Told only when the transaction that set something aside has been committed. */
  #problems: StoreProblem[] = []
  /** Up to where the index knows the log. */
  #known: LogPosition
  readonly log: LogWriter
  readonly #segments: Segments
  readonly #segmentRemoval: SegmentRemoval
  readonly compaction: Compaction

  constructor(
    readonly environment: Environment,
    settings: Pick<StoreSettings, 'maxKeptResultBytes' | 'sync' | 'segmentBytesMax'>,
    readonly onProblem: (problem: StoreProblem) => void,
    recentIdsMax?: number,
  ) {
    const { tables, dataDir, log } = environment
    this.#blocks = new BlockCache(BLOCKS_CACHED, ({ bytes }) => log.release(bytes))
    const hashKey = prepareStore(environment)
    this.#jobs = new JobTable(tables)
    this.#segments = new Segments(tables.segments, tables.blocks)
    this.#known = readLogPosition(tables.meta)
    const { sync, segmentBytesMax } = settings
    const tell = (message: string) => onProblem({ message, lost: null })
    this.log = openLog(dataDir, hashKey, sync !== 'never', this.#known, tell, segmentBytesMax)
    this.#segmentRemoval = new SegmentRemoval(this.log, this.#segments, environment.log)
    const isJob = (job: number) => this.#jobs.has(job)
    this.compaction = new Compaction(environment, this.log, this.#segments, isJob)
    this.#ids = new IdIndex(
      tables.ids,
      tables.filters,
      hashKey,
      (table, key) =>
        onProblem({
          message: `a page of ids is damaged (${table} ${key.toString('hex')}): submissions that repeat an id of it are taken for new`,
          lost: null,
        }),
      recentIdsMax,
    )
    this.#removal = new JobRemoval(tables, this.#segments)
    this.#readResults = new ReadResults(tables.results, settings.maxKeptResultBytes)
    this.#load()
    this.#recover(hashKey)
    this.compaction.committed(this.#known)
  }

  /** Brings into the index what stands in the log alone. */
  #recover(hashKey: Buffer): void {
    const { dataDir } = this.environment
    const tell = (message: string) => this.onProblem({ message, lost: null })
    const known = this.#known
    for (const segment of this.#segments.numbers())
      if (!this.log.segments().has(segment)) tell(missingSegment(segment))
    let logged: Logged[] = []
    let bytes = 0
    for (const append of tailOfLog(dataDir, hashKey, known, tell)) {
      const start = startOf(append)
      if (append.kind === 'settled') {
        // What it settles may stand before it in the tail.
        if (!this.knows(append.columns)) this.commit(logged.splice(0), [], start, () => {})
        this.settle(append.columns)
      } else {
        const one = loggedOf(append, this.#ids)
        this.#remember([one])
        logged.push(one)
      }
      bytes += append.header.bytes
      if (bytes < RECOVERY_BYTES) continue
      this.commit(logged, [], endOf(append), () => {})
      logged = []
      bytes = 0
    }
    // Whatever else an earlier life left in its last segment stays behind.
    const isBehind = [...this.log.segments()].some(
      ([segment, size]) =>
        segment > known.segment || (segment === known.segment && size > known.offset),
    )
    if (isBehind) this.commit(logged, [], this.log.position, () => {})
  }

  /** The state on disk, for the start. */
  recovery(problems: readonly string[]): Recovery {
    const jobs = recoveredJobs(this.environment, this.#jobs.values(), this.#counters)
    return { jobs, lastSequence: this.#lastSequence, lastJob: this.#jobs.last, problems }
  }

  get size(): StoreSize {
    const { fileBytes, usedBytes } = sizeOf(this.environment)
    return {
      fileBytes: fileBytes + this.log.bytes,
      usedBytes: usedBytes + this.#segments.bytesLeft,
    }
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

  /** Whether the index has all items of the settlements; what it has not cannot be settled yet. */
  knows({ sequences, models }: SettledColumns): boolean {
    for (let i = 0; i < sequences.length; i++)
      if (models[i] >= 0 && sequences[i] > this.#lastSequence) return false
    return true
  }

  /**
   * Settlements that are in the log: in memory from now on, and in the index with the next transaction.
   * @returns 1 per item that was unsettled until now.
   */
  settle(columns: SettledColumns): Uint8Array {
    const settled = this.#openSettling().settle(columns)
    this.#settled.push(columns)
    const { jobs } = columns
    for (let i = 0; i < jobs.length; i++)
      if (i === 0 || jobs[i] !== jobs[i - 1]) this.#changed.add(jobs[i])
    return settled
  }

  /** Since the last transaction; after an abort those settlements are made again. */
  #openSettling(): Settling {
    if (this.#settling !== null) return this.#settling
    const { tables, log } = this.environment
    const isJob = (job: number) => this.#jobs.has(job)
    this.#settling = new Settling(tables, log, this.#segments, this.#counters, this.#blocks, isJob)
    for (const columns of this.#settled) this.#settling.settle(columns)
    return this.#settling
  }

  /** There are settlements, or moved blocks, that the index does not have. */
  get hasUnindexed(): boolean {
    return this.#settled.length > 0 || this.compaction.hasWritten
  }

  /**
   * One transaction, durable when this returns. Throws what LMDB threw; then nothing has changed.
   * @param logged in the order in which they stand in the log.
   * @param position behind all in the log that was settled or is in `logged`.
   */
  commit(
    logged: readonly Logged[],
    steps: readonly Step[],
    position: LogPosition,
    beforeCommit: () => void,
  ): unknown[] {
    const { root, tables } = this.environment
    this.#problems = []
    const answers = root.transactionSync(() => {
      this.#takeIn(logged)
      const settling = this.#openSettling()
      for (const key of settling.damaged.values()) this.#setAside('blocks', key)
      const answered = steps.map((step) => this.#apply(step))
      settling.write()
      this.compaction.write()
      this.#readResults.trim(this.#counters)
      this.#ids.work()
      this.#removal.step()
      this.#counters.write(tables.counters)
      this.#segments.write()
      writeNumber(tables.meta, META_SEQUENCE, this.#lastSequence)
      writeLogPosition(tables.meta, position)
      beforeCommit()
      return answered
    })
    // What is read from now on is read of this state.
    root.resetReadTxn()
    this.#settling = null
    this.#settled = []
    this.#blocks.releaseDropped()
    this.#known = position
    for (const problem of this.#problems) this.onProblem(problem)
    this.#segmentRemoval.run(position)
    this.compaction.committed(position)
    return answers
  }

  /** Work that waits for a transaction of its own when nothing is written. */
  get hasWork(): boolean {
    return this.#removal.hasWork || this.#ids.hasWork
  }

  /** After an abort. @param pending appends that were admitted and are not in the index yet. */
  rollBack(pending: readonly Pick<Logged, 'entries' | 'encoded'>[]): void {
    this.#ids.forget()
    // It may hold a block that was never committed, and its sequences may come again.
    this.#blocks.clear()
    this.#settling = null
    this.#load()
    this.#remember(pending)
  }

  #remember(appends: readonly Pick<Logged, 'entries' | 'encoded'>[]): void {
    for (const { encoded, entries } of appends)
      if (this.#jobs.has(encoded.job)) this.#ids.remember(encoded.job, entries)
  }

  /** A drained store keeps no segment. */
  close(): void {
    this.log.endSegment()
    this.#segmentRemoval.run(this.#known)
  }

  /** Segments whose files were removed since it was asked. */
  removed(): number[] {
    return this.#segmentRemoval.removed()
  }

  /** Of jobs whose results have changed since it was asked; the index may not have the last of them yet. */
  ranges(): ResultRange[] {
    const changed = [...this.#changed].filter((job) => this.#jobs.has(job))
    this.#changed.clear()
    return changed.map((job) => {
      const { firstOffset, endOffset } = this.#counters.job(job)
      return { job, firstOffset, endOffset }
    })
  }

  #apply(step: Step): unknown {
    switch (step.kind) {
      case 'putJob':
        return this.#putJob(step.job)
      case 'deleteJob':
        return this.#deleteJob(step.number)
      case 'resultsRead':
        if (!this.#jobs.has(step.job)) return 0
        this.#changed.add(step.job)
        return this.#readResults.read(this.#counters.change(step.job), step.offset)
      case 'commit':
        return null
      case 'setAside':
        return this.#setAside(step.table, Buffer.from(step.key))
    }
  }

  #takeIn(logged: readonly Logged[]): void {
    const entries = new Map<number, Uint32Array[]>()
    for (const append of logged) {
      const { job, accepted, last, blocks } = append.encoded
      // The job may have been deleted since the append was admitted.
      if (accepted === 0 || !this.#jobs.has(job)) continue
      this.#lastSequence = Math.max(this.#lastSequence, last)
      this.#counters.change(job).accepted += accepted
      for (const block of blocks) this.#addBlock(job, block, append)
      const ofJob = entries.get(job)
      if (ofJob === undefined) entries.set(job, [append.entries])
      else ofJob.push(append.entries)
    }
    for (const [job, parts] of entries) this.#ids.store(job, concatWords(parts))
  }

  #addBlock(job: number, block: LoggedBlock, { segment, offset }: LogPosition): void {
    const { shape, count, tokens, haveDeadline, firstSequence, at, bytes } = block
    const { tables } = this.environment
    const row = BlockRow.of(count, tokens, haveDeadline, { segment, offset: offset + at, bytes })
    tables.blocks.put(blockKey(job, shape, firstSequence), row.encode())
    if (haveDeadline) tables.meta.put(META_TIMED, Buffer.from([1]))
    this.#counters.add(job, shape, count, tokens)
    this.#segments.add(segment, 1, bytes)
  }

  /** The memory of what is in the log, or refused, is used for others. */
  release({ encoded }: Admitted): void {
    if (encoded.buffer !== null) this.#pool.give(encoded.buffer)
  }

  #putJob(job: StoredJob): void {
    this.#jobs.put(job)
    this.#counters.change(job.number)
  }

  #deleteJob(number: number): void {
    if (!this.#jobs.delete(number)) return
    this.#counters.forget(number)
    this.#ids.drop(number)
    this.#readResults.forget(number)
    this.#removal.add(number)
  }

  #setAside(table: 'blocks' | 'results', key: Buffer): void {
    this.#settling?.forget(key)
    const problem = setAside(this.environment, this.#counters, this.#segments, table, key)
    if (problem !== null) this.#problems.push(problem)
  }

  #load(): void {
    const { tables } = this.environment
    this.#removal.clear()
    this.#readResults.clear()
    this.#segments.load()
    this.#lastSequence = readNumber(tables.meta, META_SEQUENCE) ?? 0
    const recount = new Set<number>()
    this.#counters.load(tables.counters, (key) => recount.add(key.readUInt32BE(0)))
    const { deleted, damaged } = this.#jobs.load()
    for (const number of deleted) this.#removal.add(number)
    for (const number of damaged)
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

export const unknownJob = (job: number) =>
  new FabricError('FABRIC_NOT_FOUND', `no job ${job} in the store`)
