// What the broker asks of durable storage: jobs, items, what of them is settled, results. One
// implementation stands on an embedded key-value store; tests may put another behind it.
//
// Blocks, records and columns handed in are borrowed: an implementation has read what it keeps of them
// when the call returns, not when its promise resolves.
//
// Whoever awaits a promise of this interface may tell a producer or a reader: what it stands for is
// synced. All writes asked for in one turn of the loop may share one transaction and one sync, and
// later writes never become durable before earlier ones. Reads never wait for a sync and never block
// the loop for more than 5 ms.

import type { SubmitBlock } from '@fabric/core'
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
  readonly createdAtMs: number // Unix time
  readonly state: 'open' | 'flushed' | 'ended'
  readonly paused: boolean
  readonly endedAtMs: number | null
}

export interface RecoveredJob extends StoredJob {
  readonly accepted: number
  readonly settled: Readonly<Record<string, number>>
  /** Unsettled items by disk shape. */
  readonly shapes: readonly DiskShapeCounts[]
  readonly results: {
    readonly firstOffset: number
    readonly count: number
    readonly readOffset: number
    readonly unreadBytes: number
  }
}

export interface Recovery {
  readonly jobs: readonly RecoveredJob[]
  /** Greater than the sequence of every item ever accepted durably. */
  readonly lastSequence: number
  /** What could not be read and was set aside, in words for the operator. */
  readonly problems: readonly string[]
}

/** Accepted items of one block: `sequences[i]` is 0 where the item was refused. */
export interface Append {
  readonly job: number
  readonly block: SubmitBlock
  readonly sequences: Float64Array
  readonly acceptedAtMs: number // Unix time
}

/** Items read back, in order of acceptance within the shape, as the core takes them. */
export interface LoadedItems {
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

/** `degraded`: the disk refuses writes; nothing new is accepted, reads and settlements of memory go on. */
export type StoreHealth =
  | { readonly state: 'ok' }
  | {
      readonly state: 'degraded'
      readonly code: 'FABRIC_DISK_FULL' | 'FABRIC_DISK_FAILED'
      readonly message: string
    }

export interface Store {
  readonly recovery: Recovery
  readonly health: StoreHealth
  /** Told when health changes. */
  onHealth: ((health: StoreHealth) => void) | null

  createJob(job: StoredJob): Promise<void>
  updateJob(job: StoredJob): Promise<void>
  /** Items, ids and results go with it; space may be given back later. */
  deleteJob(number: number): Promise<void>

  /**
   * SUBMIT_ACCEPTED, SUBMIT_DUPLICATE or SUBMIT_CONFLICT per item (S36), ids under way included, and
   * ids that the block itself repeats.
   */
  lookup(block: SubmitBlock): Uint8Array
  /** Resolves when synced. Rejects with FabricError FABRIC_DISK_FULL or FABRIC_DISK_FAILED; then nothing of it is kept. */
  append(append: Append): Promise<void>

  /**
   * The job's next unsettled items of the shape that were not read since the start, in order of
   * acceptance: about `tokens` of them and at most `maxBytes`, but at least one; null at the end. Items
   * whose append is not yet durable may come or not. Always of one job: jobs take turns (S20a), and
   * those on hold, paused or deleted are not read at all.
   */
  read(job: number, shape: DiskShape, tokens: number, maxBytes: number): LoadedItems | null

  /** Marks items settled and appends their results in one transaction. An item that is settled already is left out. */
  settle(items: readonly SettledItem[]): Promise<void>
  /** Whether the item is unsettled: for results of an earlier life (S26). */
  isUnsettled(job: number, sequence: number): boolean

  /** Results that are durable, from an offset on, at most `maxBytes` of them and at least one. */
  results(
    job: number,
    offset: number,
    maxBytes: number,
  ): { readonly records: readonly ResultRecord[]; readonly nextOffset: number }
  /** Where the job's durable results begin, what was dropped left out, and end. */
  resultRange(job: number): { readonly firstOffset: number; readonly count: number }
  /**
   * All before the offset were read and may be dropped when room is needed. Answers the bytes that
   * are unread now, counted as in `RecoveredJob.results`.
   */
  resultsRead(job: number, offset: number): number

  /** Bytes on disk, and of it what is in use. */
  size(): { readonly fileBytes: number; readonly usedBytes: number }
  /** Syncs and closes. */
  close(): Promise<void>
}
