// Which ids a job has (S36). A transaction adds pages of the new ids (level 0), which also stand in a hash
// table in memory; RECENT_MAX of them become one sorted run (level 1); eight runs of a level become one
// of the next. So new ids are written in one place, however many there are, memory holds the recent ones
// and two bytes of each older one, and a start reads none of them.
//
// Belongs to the writing thread. `admit` and `lookup` read; `store` and `work` run inside the transaction.
// After an abort `forget` drops what memory knew: it is read again when asked for.
import { SUBMIT_ACCEPTED, SUBMIT_CONFLICT, SUBMIT_DUPLICATE, SUBMIT_QUEUE_FULL } from '@fabric/core'
import type { Table } from './environment.js'
import { BodyDigests, IdDigest } from './id-digest.js'
import { type FlushTables, RunFlush } from './id-flush.js'
import { PAGES_PER_STEP, RunMerge } from './id-merge.js'
import {
  decodePage,
  ENTRY_WORDS,
  encodePage,
  Filter,
  findInPage,
  PAGE_ENTRIES,
  pageOf,
  RecentIds,
} from './id-run.js'
import { type ItemBlock, type ItemColumns, tokenStartsOf } from './item-block.js'
import { idPageKey, idRunKey, jobKey, keyBehind, readBig } from './layout.js'

/** Of one job: becomes a run beyond it. */
const RECENT_MAX = 65_536
/** Of all jobs, 48 to 96 bytes each: the largest job's become a run beyond it. */
const RECENT_TOTAL_MAX = 1_000_000
export const RUNS_PER_LEVEL = 8
/** Runs of this level, of 33 million ids each, are not merged further. */
export const LEVEL_MAX = 4

export interface IdRun {
  readonly level: number
  readonly run: number
  readonly filter: Filter
}

export interface JobIds {
  readonly job: number
  recent: RecentIds
  /** The first so many of them stand in the index; the others are admitted. */
  stored: number
  /** Runs of level 0, a page each, in which those stand, oldest first. */
  level0: number[]
  /** What was recent and becomes a run. */
  flush: RunFlush | null
  runs: IdRun[]
}

export interface AdmittedIds {
  /** By item. */
  readonly codes: Uint8Array
  /** Of what is new, to be stored. */
  readonly entries: Uint32Array
}

export class IdIndex {
  readonly #digest: IdDigest
  readonly #jobs = new Map<number, JobIds>()
  #recentTotal = 0
  /** Jobs whose recent ids should become a run. */
  readonly #full = new Set<JobIds>()
  #flush: RunFlush | null = null
  #merge: RunMerge | null = null
  /** Since the last `work`. */
  #storedPages = 0
  readonly #bodies = new BodyDigests()

  constructor(
    readonly ids: Table,
    readonly filters: Table,
    hashKey: Buffer,
    readonly onDamaged: (table: 'ids' | 'filters', key: Buffer) => void,
    readonly recentMax = RECENT_MAX,
  ) {
    this.#digest = new IdDigest(hashKey)
  }

  /** What is new is known from now on. */
  admit(items: ItemColumns): AdmittedIds {
    const of = this.#job(items.job)
    const first = of.recent.count
    const codes = this.#classify(items, of, of.recent)
    this.#recentTotal += of.recent.count - first
    return { codes, entries: of.recent.entriesFrom(first) }
  }

  lookup(items: ItemColumns): Uint8Array {
    return this.#classify(items, this.#job(items.job), new RecentIds())
  }

  /** Of the item that has the id, or -1. */
  sequenceOf(job: number, id: Uint8Array): number {
    const of = this.#job(job)
    this.#digest.digest(id, 0, id.length)
    const { words } = this.#digest
    const recent = Math.max(of.recent.sequence(words), of.flush?.ids.sequence(words) ?? -1)
    if (recent >= 0) return recent
    const entry = this.#entryInRuns(of, words)
    return entry === null ? -1 : entry[5] + entry[6] * 2 ** 32
  }

  /** Entries that were admitted and not stored, after `forget`. */
  remember(job: number, entries: Uint32Array): void {
    this.#job(job).recent.addAll(entries)
    this.#recentTotal += entries.length / ENTRY_WORDS
  }

  /** Entries that were admitted, in the order in which they were. */
  store(job: number, entries: Uint32Array): void {
    const of = this.#job(job)
    const pageWords = PAGE_ENTRIES * ENTRY_WORDS
    for (let at = 0; at < entries.length; at += pageWords) {
      const page = entries.subarray(at, at + pageWords)
      // The sequence of the first entry.
      const run = page[5] + page[6] * 2 ** 32
      this.ids.put(idPageKey(job, 0, run, 0), encodePage(page))
      of.level0.push(run)
      this.#storedPages += 1
    }
    of.stored += entries.length / ENTRY_WORDS
    if (of.stored >= this.recentMax) this.#full.add(of)
    else if (this.#recentTotal > RECENT_TOTAL_MAX) this.#full.add(this.#largest())
  }

  /** Of the items of a block that was admitted in an earlier life. */
  entriesOf(model: number, block: ItemBlock): Uint32Array {
    const { count, ids, idEnds, firstSequence, sequenceDeltas } = block
    const entries = new Uint32Array(count * ENTRY_WORDS)
    const models = new Int32Array(count).fill(model)
    const bodies = this.#bodies.of({ ...block, model: models, tokenStarts: tokenStartsOf(block) })
    for (let i = 0; i < count; i++) {
      this.#digest.digest(ids, i === 0 ? 0 : idEnds[i - 1], idEnds[i])
      const sequence = firstSequence + sequenceDeltas[i]
      const at = i * ENTRY_WORDS
      entries.set(this.#digest.words, at)
      entries[at + 4] = bodies[i]
      entries[at + 5] = sequence % 2 ** 32
      entries[at + 6] = Math.floor(sequence / 2 ** 32)
    }
    return entries
  }

  get hasWork(): boolean {
    return this.#full.size > 0 || this.#flush !== null || this.#merge !== null
  }

  /** Sorts and merges runs, as much of it as keeps up with what is stored, and a little when nothing is. */
  work(): void {
    const pages = this.#storedPages * LEVEL_MAX
    this.#storedPages = 0
    for (let done = 0; this.hasWork && done <= pages; done += PAGES_PER_STEP) {
      this.#flushSome()
      this.#mergeSome()
    }
  }

  #flushSome(): void {
    if (this.#flush !== null) this.#stepFlush(this.#flush)
    if (this.#flush !== null) return
    for (const of of this.#full) {
      this.#full.delete(of)
      if (of.stored === 0) continue
      this.#flush = beginFlush(this, of)
      this.#flush.step()
      return
    }
  }

  #stepFlush(flush: RunFlush): void {
    const of = this.#job(flush.job)
    if (of.flush === flush && flush.isWritten) {
      // It is read from the index from now on.
      of.runs.push({ level: 1, run: flush.run, filter: flush.filter })
      of.flush = null
      this.#recentTotal -= flush.count
      this.#mergeIfDue(of)
    }
    if (!flush.isDone) flush.step()
    else this.#flush = null
  }

  /** A piece of the merge under way. */
  #mergeSome(): void {
    if (this.#merge === null) return
    const { merge, job } = { merge: this.#merge, job: this.#job(this.#merge.job) }
    const merged = merge.step()
    if (merged === null) return
    job.runs = job.runs.filter((run) => !merge.sources.includes(run)).concat(merged)
    this.#merge = null
    this.#mergeIfDue(job)
  }

  forget(): void {
    this.#jobs.clear()
    this.#full.clear()
    this.#recentTotal = 0
    this.#flush = null
    this.#merge = null
  }

  /** The job was deleted: its rows are removed by whoever removes the job. */
  drop(job: number): void {
    const of = this.#jobs.get(job)
    if (of === undefined) return
    this.#recentTotal -= of.recent.count + (of.flush?.count ?? 0)
    this.#jobs.delete(job)
    this.#full.delete(of)
    if (this.#flush?.job === job) this.#flush = null
    if (this.#merge?.job === job) this.#merge = null
  }

  #classify(items: ItemColumns, of: JobIds, added: RecentIds): Uint8Array {
    const codes = new Uint8Array(items.count)
    const bodies = this.#bodies.of(items)
    const { sequences, ids, idEnds } = items
    for (let i = 0; i < items.count; i++) {
      if (sequences[i] === 0) {
        codes[i] = SUBMIT_QUEUE_FULL
        continue
      }
      this.#digest.digest(ids, i === 0 ? 0 : idEnds[i - 1], idEnds[i])
      const body = bodies[i]
      const { words } = this.#digest
      let known = added.body(words)
      if (known < 0 && added !== of.recent) known = of.recent.body(words)
      if (known < 0 && of.flush !== null) known = of.flush.ids.body(words)
      if (known < 0) known = this.#bodyInRuns(of, words)
      if (known < 0) added.add(words, body, sequences[i])
      codes[i] = known < 0 ? SUBMIT_ACCEPTED : known === body ? SUBMIT_DUPLICATE : SUBMIT_CONFLICT
    }
    return codes
  }

  #bodyInRuns(of: JobIds, digest: Uint32Array): number {
    return this.#entryInRuns(of, digest)?.[4] ?? -1
  }

  #entryInRuns(of: JobIds, digest: Uint32Array): Uint32Array | null {
    for (const { level, run, filter } of of.runs) {
      if (!filter.mayHold(digest)) continue
      const key = idPageKey(of.job, level, run, pageOf(digest[0], filter.pages))
      const entries = this.readPage(key)
      const at = findInPage(entries, digest)
      if (at >= 0) return entries.subarray(at, at + ENTRY_WORDS)
    }
    return null
  }

  /** A damaged page knows no ids. */
  readPage(key: Buffer): Uint32Array {
    const page = this.ids.getBinary(key)
    const entries = page === undefined ? null : decodePage(page)
    if (entries === null) this.onDamaged('ids', key)
    return entries ?? new Uint32Array(0)
  }

  #job(job: number): JobIds {
    let of = this.#jobs.get(job)
    if (of === undefined) {
      const recent = new RecentIds()
      const level0 = this.#level0(job)
      of = { job, recent, stored: 0, level0, flush: null, runs: this.#loadRuns(job) }
      for (const run of level0) recent.addAll(this.readPage(idPageKey(job, 0, run, 0)))
      of.stored = recent.count
      this.#recentTotal += of.stored
      this.#jobs.set(job, of)
      this.#mergeIfDue(of)
    }
    return of
  }

  #loadRuns(job: number): IdRun[] {
    const runs: IdRun[] = []
    const start = jobKey(job)
    for (const { key, value } of this.filters.getRange({ start, end: keyBehind(start) })) {
      const run = { level: key[4], run: readBig(key, 5) }
      const filter = Filter.decode(value)
      if (filter === null) this.onDamaged('filters', Buffer.from(key))
      runs.push({ ...run, filter: filter ?? this.#openFilter(job, run.level, run.run) })
    }
    return runs
  }

  #openFilter(job: number, level: number, run: number): Filter {
    const start = idRunKey(job, level, run)
    return Filter.open(this.ids.getKeysCount({ start, end: keyBehind(start) }))
  }

  #level0(job: number): number[] {
    const start = idPageKey(job, 0, 0, 0)
    const keys = this.ids.getKeys({ start, end: idPageKey(job, 1, 0, 0) })
    return Array.from(keys, (key) => readBig(key, 5))
  }

  #largest(): JobIds {
    let largest: JobIds | null = null
    for (const of of this.#jobs.values())
      if (largest === null || of.stored > largest.stored) largest = of
    return largest!
  }

  #mergeIfDue(of: JobIds): void {
    if (this.#merge !== null) return
    for (let level = 1; level < LEVEL_MAX; level++) {
      const runs = of.runs.filter((run) => run.level === level)
      if (runs.length < RUNS_PER_LEVEL) continue
      this.#merge = new RunMerge(this, of.job, runs.slice(0, RUNS_PER_LEVEL))
      return
    }
  }
}

/** Takes the stored ones out of `recent`. */
function beginFlush(tables: FlushTables, of: JobIds): RunFlush {
  const { recent, stored, level0 } = of
  of.flush = new RunFlush(tables, of.job, recent, stored, level0)
  of.recent = new RecentIds(recent.room)
  of.recent.addAll(recent.entriesFrom(stored))
  of.stored = 0
  of.level0 = []
  return of.flush
}
