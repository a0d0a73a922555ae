// What brings items into the core: submissions, what was read back from disk, what an earlier life left.
//
// Sets of items travel as flat columns and as item slots (row numbers of the core's item table), never
// as one object per item.

import type { SettledStatus } from './effects.js'

/** Items of one submission, as flat columns. The core copies what it keeps. */
export interface SubmitBlock {
  readonly job: number
  readonly count: number
  readonly model: Int32Array // [count]
  /** Tokens per item, at least 1. For an opaque payload: the length it declares. */
  readonly lengths: Int32Array // [count]
  /** Token ids, item after item. An item with a payload has none here; empty under lengthsOnly. */
  readonly tokens: Int32Array
  /** UTF-8 ids, item after item; `idEnds[i]` is the end of id i. */
  readonly ids: Uint8Array
  readonly idEnds: Uint32Array // [count]
  /** Opaque payloads, item after item, or null when no item has one; an item without has length 0. */
  readonly payloads: Uint8Array | null
  readonly payloadEnds: Uint32Array | null // [count]
  /** Time for each item to be done in, ms from acceptance; 0 = any. Absent when no item has one. */
  readonly deadlineMs?: Int32Array | null // [count]
  /** How long each item may be held back for a fuller batch, ms; 0 = as its job (S16). */
  readonly maxWaitMs?: Int32Array | null // [count]
}

/** Items of one job and disk shape, read back for the window, in order of acceptance. */
export interface LoadedBlock {
  readonly block: SubmitBlock
  readonly sequences: Float64Array // [count]
  /** On the core's clock; what was accepted before the clock began counts from its start (S16). */
  readonly acceptedAt: Float64Array // [count]
  /** On the core's clock; 0 = none. Absent when no item has one (S35). */
  readonly deadlineAt?: Float64Array | null // [count]
}

/** Columns of a durable submission: what the core needs once the items are on disk. */
export interface StoredItems {
  readonly job: number
  readonly model: Int32Array // [count]
  readonly lengths: Int32Array // [count]
  /** 0 where the core refused the item. */
  readonly sequences: Float64Array // [count]
  /** As in LoadedBlock. */
  readonly deadlineAt?: Float64Array | null // [count]
  /**
   * The items themselves, when some have a wait of their own: those stand in the window at once, and
   * wait as their job does after a restart (S16).
   */
  readonly block?: SubmitBlock | null
  /** What the store says: SUBMIT_ACCEPTED where it is on disk, or why it is not kept. */
  readonly codes: Uint8Array // [count]
}

/** A job as it was found on disk at the start. */
export interface RestoredJob {
  readonly job: number
  readonly weight: number
  /** As it was created with; absent: the operator's (S16). */
  readonly maxWaitMs?: number | undefined
  readonly flushed: boolean
  /** Its end was told in an earlier life. */
  readonly ended: boolean
  readonly settled: Readonly<Partial<Record<SettledStatus, number>>>
  readonly unreadResultBytes: number
  /** Unsettled items by model and length rounded up to DISK_ROUND_TO. */
  readonly shapes: readonly {
    readonly model: number
    readonly paddedLength: number
    readonly items: number
    readonly tokens: number
  }[]
  /** Of its items on disk that have one (S35). */
  readonly deadlines?: readonly DiskDeadline[]
}

/** An item on disk that must be done in time. */
export interface DiskDeadline {
  readonly model: number
  readonly paddedLength: number
  readonly sequence: number
  readonly length: number
  /** On the core's clock. */
  readonly deadlineAt: number
}

/** Items on disk are counted by length rounded up to this, whatever `roundTo` is. */
export const DISK_ROUND_TO = 8
export const SUBMIT_ACCEPTED = 0
export const SUBMIT_DUPLICATE = 1 // same id, same body (S36)
export const SUBMIT_CONFLICT = 2 // same id, another body (S36): 409
export const SUBMIT_TOO_LARGE = 3 // over maxItemBytes (S34): 413
export const SUBMIT_QUEUE_FULL = 4 // this and all that follow (S34): 429
export const SUBMIT_RESULTS_UNREAD = 5 // the job's results are not read (S34): 429
