// What the broker asks of durable storage: jobs, items, what of them is settled, results. One
// implementation stands on LMDB (open.ts), with a thread that writes and a thread that reads; tests
// may put another behind it.
//
// Blocks, records and columns handed in are borrowed: an implementation has read what it keeps of them
// when the call returns, not when its promise resolves.
//
// Whoever awaits a promise of this interface may tell a producer or a reader: what it stands for is
// synced. All writes asked for in one turn of the loop, or while a commit is under way, share one
// transaction and one sync, and later writes never become durable before earlier ones. Reads never
// wait for a sync. No disk is touched on the caller's thread: that is why reads are promises too.

import type { SettledStatus, SubmitBlock } from '@fabric/core'
import type { ResultRecord } from '../results/log.js'

/** Items on disk are kept by disk shape: model and length rounded up to 8, whatever roundTo is. */
export interface DiskShape {
  readonly model: number
  /** Multiple of 8, tokens. */
  readonly paddedLength: number
}

/** What a shape still has: not settled, leased and loaded ones too. */
export interface DiskShapeCounts extends DiskShape {
  readonly items: number
  readonly tokens: number
}

/** A job as it is kept. Numbers are given once and never used again. */
export interface StoredJob {
  readonly number: number
  readonly id: string
  readonly model: number | null
  /** S20a. */
  readonly weight: number
  /** S16. Absent, or null: the operator's. */
  readonly maxWaitMs?: number | null
  readonly createdAtMs: number // Unix time
  readonly state: 'open' | 'flushed' | 'ended'
  readonly paused: boolean
  /** Its items were cancelled, or are about to be: it takes no new ones. */
  readonly cancelled: boolean
  readonly endedAtMs: number | null
}

/** An unsettled item that must be done in time (S35). */
export interface StoredDeadline extends DiskShape {
  readonly sequence: number
  readonly length: number
  readonly deadlineAtMs: number // Unix time
}

export interface RecoveredJob extends StoredJob {
  readonly accepted: number
  readonly settled: Readonly<Record<SettledStatus, number>>
  /** Items that the disk gave back damaged and that were set aside: they never get a result. */
  readonly lost: number
  /** Unsettled items by disk shape: accepted = settled + lost + these. */
  readonly shapes: readonly DiskShapeCounts[]
  readonly deadlines: readonly StoredDeadline[]
  readonly results: {
    readonly firstOffset: number
    /** Offset behind the last result. */
    readonly endOffset: number
    readonly readOffset: number
    readonly unreadBytes: number
  }
}

export interface Recovery {
  readonly jobs: readonly RecoveredJob[]
  /** Greater than the sequence of every item ever accepted durably. */
  readonly lastSequence: number
  /** No job ever had a greater number, deleted ones included; -1 in a new store. */
  readonly lastJob: number
  /** What could not be read and was set aside, in words for the operator. */
  readonly problems: readonly string[]
}

/** Items of one block to be kept: `sequences[i]` is 0 where the item was refused already. */
export interface Append {
  readonly job: number
  readonly block: SubmitBlock
  /** Growing, and greater than every sequence of an earlier append. */
  readonly sequences: Float64Array
  readonly acceptedAtMs: number // Unix time
}

/**
 * Items of one job read back, in order of acceptance, as the core takes them. The caller's own, or until it
 * calls `release`. A deadline of the block counts from `acceptedAtMs`.
 */
export interface LoadedItems {
  /** The memory is used for what is read next; who does not call it keeps the memory. */
  readonly release?: () => void
  readonly shape: DiskShape
  readonly block: SubmitBlock
  readonly sequences: Float64Array
  readonly acceptedAtMs: Float64Array
}

export interface SettledItem {
  readonly job: number
  readonly sequence: number
  /** Null for an item that was not durable: only its result is kept. */
  readonly shape: DiskShape | null
  readonly record: ResultRecord
}

/** `degraded`: the disk refuses writes, or has only its reserve left; nothing new is accepted, the rest goes on. */
export type StoreHealth =
  | { readonly state: 'ok' }
  | {
      readonly state: 'degraded'
      readonly code: 'FABRIC_DISK_FULL' | 'FABRIC_DISK_FAILED'
      readonly message: string
    }

/** Something on disk was damaged and was set aside while the broker ran. */
export interface StoreProblem {
  /** For the operator. */
  readonly message: string
  /** Items that are lost by it, which the caller must count as ended; null when none are. */
  readonly lost: (DiskShapeCounts & { readonly job: number }) | null
}

export interface Store {
  readonly recovery: Recovery
  readonly health: StoreHealth
  /** Told when health changes. */
  onHealth: ((health: StoreHealth) => void) | null
  onProblem: ((problem: StoreProblem) => void) | null

  createJob(job: StoredJob): Promise<void>
  updateJob(job: StoredJob): Promise<void>
  /** Items, ids and results go with it; space may be given back later. */
  deleteJob(number: number): Promise<void>

  /** SUBMIT_ACCEPTED (not known), SUBMIT_DUPLICATE or SUBMIT_CONFLICT per item (S36); keeps nothing. */
  lookup(block: SubmitBlock): Promise<Uint8Array>
  /**
   * Keeps what is new and says so item by item, as `lookup` does: ids under way and ids that the block
   * itself repeats are known, so nobody has to look up before. Items with sequence 0 are answered
   * SUBMIT_QUEUE_FULL and neither looked up nor kept. Resolves when synced. Rejects with FabricError
   * FABRIC_DISK_FULL or FABRIC_DISK_FAILED; then nothing of it is kept.
   */
  append(append: Append): Promise<Uint8Array>

  /**
   * The job's next unsettled items of the shape that were not read since the start, in order of
   * acceptance: about `tokens` of them and at most `maxBytes`, but at least one; null: nothing more
   * for now, appended items come later. Always of one job: jobs take turns (S20a), and those on hold,
   * paused or deleted are not read at all. Calls are answered in the order in which they were made.
   */
  read(job: number, shape: DiskShape, tokens: number, maxBytes: number): Promise<LoadedItems | null>
  /** The item, if it is unsettled: for results of an earlier life (S26). Does not count as read. */
  find(sequence: number, job?: number): Promise<LoadedItems | null>
  /** The same by id. */
  findId(job: number, id: Uint8Array): Promise<LoadedItems | null>
  /** Unsettled items of its job and shape that were accepted before the item. */
  countAhead(job: number, shape: DiskShape, sequence: number): Promise<number>

  /**
   * Marks items settled and appends their results in one transaction, in the order given. @returns 1
   * per item, 0 where it was settled or lost already and its result was dropped. While the disk fails
   * this waits for it; it rejects when more waits than `maxHeldResultBytes`.
   */
  settle(items: readonly SettledItem[]): Promise<Uint8Array>

  /**
   * Results that are durable, from an offset on, at most `maxBytes` of them and one at least if there
   * is one. Rejects with FABRIC_RESULTS_GONE when the offset was dropped.
   */
  results(
    job: number,
    offset: number,
    maxBytes: number,
  ): Promise<{ readonly records: readonly ResultRecord[]; readonly nextOffset: number }>
  /** Where the job's durable results begin, what was dropped left out, and end. */
  resultRange(job: number): { readonly firstOffset: number; readonly endOffset: number }
  /**
   * All before the offset were read and may be dropped when room is needed (`maxKeptResultBytes`).
   * Answers the bytes that are unread now, counted as in `RecoveredJob.results`.
   */
  resultsRead(job: number, offset: number): Promise<number>

  /** Bytes on disk, and of it what is in use, as of the last commit. */
  size(): { readonly fileBytes: number; readonly usedBytes: number }
  /** Syncs and closes. */
  close(): Promise<void>
}
