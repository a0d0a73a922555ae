// What the core tells about itself (counts.ts).

import type { Contract } from './core-config.js'
import type { GateReason, SettledStatus } from './effects.js'

export interface TierCounts {
  readonly items: number
  readonly tokens: number
}

/**
 * Where an accepted item waits. `disk`: on disk, or read ahead from it. `held`: its job takes no
 * results (S34).
 */
export type Tier = 'staging' | 'lane' | 'disk' | 'reclaimed' | 'retrying' | 'held'

export interface ConsumerCounts {
  readonly id: number
  readonly name: string
  readonly contract: Contract
  readonly state: 'live' | 'draining'
  /** Tokens of its batches: less than the contract's for a while after it ran out of memory (S28). */
  readonly effectiveTokens: number
  /** Its renewal is late by more than leaseTimeout / 3 (S29). */
  readonly overdue: boolean
  /** Batches dispatched and not taken. */
  readonly channel: number
  readonly inFlight: number
  readonly batches: number
  readonly items: number
  readonly shapeSwitches: number
  /** Time with an empty channel and nothing in flight, since registration. */
  readonly idleNs: number
  /** The part of it between the model's first dispatch and the end of its input. */
  readonly idleNsDuringInput: number
}

/** What is held back for fuller batches, and for how long still (S16). */
export interface AgeingCounts {
  /** Shapes that are due now, and those of them that were passed over for starveBatches. */
  readonly dueShapes: number
  readonly passedOverShapes: number
  /** Until the next shape is due by its job's or the operator's wait; null: none has one. */
  readonly nextDueInNs: number | null
}

export interface ModelCounts {
  readonly model: number
  readonly ageing: AgeingCounts
  readonly consumers: number
  readonly waiting: TierCounts
  readonly lanesActive: number
  readonly inCleanup: boolean
  /** Null until it happens. */
  readonly firstDispatchAt: number | null
  /** Null while some job may still submit to this model. */
  readonly inputEndedAt: number | null
}

export interface JobCounts {
  readonly job: number
  readonly flushed: boolean
  readonly accepted: number
  readonly waiting: number
  readonly leased: number
  readonly settled: Readonly<Record<SettledStatus, number>>
  readonly unreadResultBytes: number
  /** Its waiting items are not ready: results are unread (S34), or it is paused. */
  readonly onHold: boolean
  readonly paused: boolean
}

/** All that `/v1/state` and `/metrics` tell about the core. Made anew by each call. */
export interface CoreCounts {
  readonly accepted: number
  readonly waiting: TierCounts
  readonly queue: Readonly<Record<Tier, TierCounts>>
  readonly leased: number
  readonly settled: Readonly<Record<SettledStatus, number>>
  readonly lanesActive: number
  /** The disk tier's window: what of it stands in memory. */
  readonly window: TierCounts
  /** Admitted and not yet durable. */
  readonly reserved: TierCounts
  readonly gate: {
    readonly open: boolean
    readonly reason: GateReason | null
    readonly heldNs: number
    readonly heldTokens: number
    readonly thresholdTokens: number
    /** heldTokens / thresholdTokens, at most 1; 1 when open. */
    readonly progress: number
  }
  readonly cleanup: {
    readonly entries: number
    readonly ns: number
    readonly batches: number
    readonly items: number
    /** Models in cleanup now. */
    readonly models: readonly number[]
  }
  readonly consumers: readonly ConsumerCounts[]
  readonly models: readonly ModelCounts[]
  readonly jobs: readonly JobCounts[]
  /** Models with waiting items and no consumer (S6). */
  readonly unservedItems: readonly { readonly model: number; readonly items: number }[]
  /** Age of the longest-waiting head of a queue; 0 when nothing waits in staging, lanes or reclaimed. */
  readonly oldestItemAgeNs: number
  readonly reclaimedItems: number
  /** Groups that wait on their own: suspects of a death, halves of what was too much (S27, S28). */
  readonly groups: { readonly waiting: number; readonly items: number }
  /** Kept for whoever looks into them, and those that made room for others (S27). */
  readonly quarantine: { readonly items: number; readonly dropped: number }
  readonly outOfMemoryBatches: number
  readonly lateResults: number
  readonly aloneBatches: number
  /** Bytes of the arena's segments. */
  readonly arenaBytes: number
}
