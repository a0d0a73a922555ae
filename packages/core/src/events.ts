// What goes into the scheduling core: `step(event, now)` is all it offers.
//
// `now` is integer nanoseconds on a clock that only grows; the core never reads one.

import type { Contract } from './core-config.js'
import type { DeathCause, QuarantinedItem } from './effects.js'
import type { LoadedBlock, RestoredJob, StoredItems, SubmitBlock } from './submission.js'

/** How one item of a results message ended (S23). */
export const RESULT_COMPLETED = 0
export const RESULT_FAILED = 1 // for good
export const RESULT_RETRY = 2 // failed, may be tried again (S28)
export const RESULT_NACK = 3 // untouched, goes back
export const RESULT_OUT_OF_MEMORY = 4 // untouched: the batch was too much for the device (S28)

export type CoreEvent =
  /**
   * `weight` (1): its share where jobs meet in a shape (S20a). `maxWaitMs`: how long its items may be
   * held back for a fuller batch, 0 = any; by default the operator's (S16).
   */
  | {
      readonly type: 'createJob'
      readonly job: number
      readonly weight?: number
      readonly maxWaitMs?: number
    }
  | { readonly type: 'deleteJob'; readonly job: number }
  | { readonly type: 'submit'; readonly block: SubmitBlock } // lands in staging and lanes
  /** Disk mode, before anything else: what an earlier life left. */
  | {
      readonly type: 'restore'
      readonly lastSequence: number
      readonly jobs: readonly RestoredJob[]
      /** Oldest first (S27). */
      readonly quarantined?: readonly QuarantinedItem[]
    }
  /** A durable submission: the core says which items have room, and numbers them. */
  | { readonly type: 'admit'; readonly block: SubmitBlock }
  /** Admitted items are on disk, or will not be: in the order of their numbers. */
  | { readonly type: 'stored'; readonly items: StoredItems }
  /** Items of the disk tier are damaged and set aside: they count as failed. */
  | {
      readonly type: 'lost'
      readonly job: number
      readonly model: number
      readonly paddedLength: number
      readonly items: number
      readonly tokens: number
    }
  /** Answers a `load`; null when nothing of the job and shape is left on disk. */
  | {
      readonly type: 'loaded'
      readonly job: number
      readonly model: number
      readonly paddedLength: number
      readonly items: LoadedBlock | null
    }
  /** End of input of a job, or of all jobs (job null). */
  | { readonly type: 'flush'; readonly job: number | null }
  /** The job's reader has taken this many bytes of results (S34). */
  | { readonly type: 'resultsRead'; readonly job: number; readonly bytes: number }
  | { readonly type: 'resultsStored'; readonly job: number; readonly bytes: number }
  | {
      readonly type: 'register'
      readonly consumer: number
      readonly name: string
      readonly contract: Contract
    }
  | { readonly type: 'renew'; readonly consumer: number }
  /** The consumer has started on a batch of its channel. */
  | { readonly type: 'taken'; readonly consumer: number; readonly batch: number }
  /** Settles items of a batch: `index[i]` in the batch ended as `outcome[i]`. */
  | {
      readonly type: 'results'
      readonly consumer: number
      readonly brokerLife: bigint
      readonly batch: number
      readonly index: Uint32Array
      readonly outcome: Uint8Array
    }
  /** Takes nothing new; its channel goes back, what it has taken it may settle. */
  | { readonly type: 'drain'; readonly consumer: number }
  /** The connection closed, whatever the reason (S24). */
  | { readonly type: 'disconnect'; readonly consumer: number; readonly cause: DeathCause }
  /** The transport has, or has not, room for a worst-case batch: part of a free place. */
  | { readonly type: 'room'; readonly consumer: number; readonly hasRoom: boolean }
  /** Its waiting items are not ready until it is resumed; it takes new ones (S35). */
  | { readonly type: 'pauseJob'; readonly job: number }
  | { readonly type: 'resumeJob'; readonly job: number }
  /** Ends items that have not ended, found by `Core.find`; those of another number are left alone. */
  | {
      readonly type: 'cancel'
      readonly slots: readonly number[]
      readonly numbers: readonly number[]
    }
  /** Ends items on disk, by their numbers, unless they have been read or have ended (S35). */
  | {
      readonly type: 'cancelOnDisk'
      readonly job: number
      readonly model: number
      readonly paddedLength: number
      readonly sequences: readonly number[]
      readonly lengths: readonly number[]
    }
  /**
   * Results of batches of an earlier life of the broker, which the store has found to be of these items;
   * those of `unknown` places are of none (S26).
   */
  | {
      readonly type: 'earlierResults'
      readonly consumer: number
      readonly batch: number
      readonly items: readonly EarlierResult[]
      readonly unknown: readonly number[]
    }
  /** Has some items of a job read that are on disk, also while it is on hold: to cancel them. */
  | { readonly type: 'readOut'; readonly job: number }
  /** Accepts quarantined items anew, by their numbers, or forgets them (S27). */
  | { readonly type: 'replay'; readonly items: readonly number[] }
  | { readonly type: 'discard'; readonly items: readonly number[] }
  /** Timers up to `now` fire. */
  | { readonly type: 'tick' }
  /** Decides at most one batch. Repeated until no dispatch effect comes back (I5). */
  | { readonly type: 'dispatch' }

/** Of a durable item that the store calls unsettled. */
export interface EarlierResult {
  readonly job: number
  readonly model: number
  readonly paddedLength: number
  readonly sequence: number
  readonly length: number
  /** Its place in the batch of then. */
  readonly index: number
  readonly status: 'completed' | 'failed'
}
