// What goes into the scheduling core and what comes out: the contract with everything around it.
//
// The core is a function of (state, event, now) to effects: `step(event, now)` is all it offers.
// `now` is integer nanoseconds on a clock that only grows; the core never reads one. Sets of items
// travel as flat columns and as item slots (row numbers of the core's item table), never as one
// object per item.

/** The four integers a GPU registers, with what it may add. */
export interface Contract {
  /** Most items in a batch. */
  readonly batchSize: number
  /** Token budget of a batch. */
  readonly tokens: number
  /** Longest input the runtime takes, tokens. The broker never filters by it (S4). */
  readonly inputLength: number
  readonly model: number
  readonly layout: 'padded' | 'ragged'
  /** Lengths are padded to a multiple of this power of two, 1 to 64. */
  readonly roundTo: number
  /** Most batches taken and not settled. */
  readonly maxInFlight: number
}

export type GateReason = 'threshold' | 'disk' | 'flush' | 'max_hold' | 'full' | 'due'
export type ClosedBy = 'token_limit' | 'item_limit' | 'byte_limit' | 'lane_empty' | 'alone'
export type Source = 'reclaimed' | 'due' | 'disk' | 'lane' | 'staging'
export type DeathCause = 'connection_closed' | 'lease_timeout' | 'lease_max' | 'protocol_error'
export type SettledStatus = 'completed' | 'failed' | 'expired' | 'cancelled' | 'quarantined'

/** What the tokens of a contract bound: items x padded length, or the sum of lengths (S17, S18). */
export type BudgetRule = 'padded' | 'actual'

/** Rules the operator may turn; names are those of the configuration file (interfaces.md). */
export interface CoreConfig {
  readonly mode: 'memory' | 'disk' // storage modes; S8
  readonly readAheadTokens: number // window of the disk tier
  readonly roundTo: number // 8: S17
  readonly lengthClasses: readonly number[] // ascending edges; none: each padded length (S20)
  readonly overtakeLimit: number // 1,000 (S20)
  readonly budgetRule: BudgetRule | null // null: by mode (S18)
  readonly readyRule: 'full-batch' | 'batch-size' // S13
  /** By need: most padding that a span adds; `[0]` = no spans (S13a, S13b). */
  readonly spanWaste: readonly number[]
  readonly serve: 'next' | 'first' // S11; 'first' is the plain behaviour
  readonly channelDepth: number // 2
  readonly laneOrder: 'round-robin' | 'affinity' // S15
  readonly affinityRun: number // 16: most batches of one lane in a row (S15)
  readonly activationThreshold: number | null // null: S2's default
  readonly releaseThreshold: number | null // tokens; null: S7's default
  readonly gateOpensOn: 'any' | 'threshold' // 'threshold' is the plain behaviour
  readonly maxWaitMs: number // 300,000: of jobs that name none; 0 = none (S16)
  readonly starveBatches: number // 10,000; 0 = never (S16)
  readonly gateMaxHoldMs: number // 30,000; 0 = never (S10)
  readonly laneIdleMs: number // 30,000 (S3)
  readonly cleanupIdleMs: number // 50; 0 = at once (S29)
  readonly cleanupMerge: boolean // S31; false is the plain behaviour
  readonly leaseTimeoutMs: number // 30,000 (S24)
  readonly leaseMaxMs: number // 3,600,000 (S24)
  readonly retryDelayMs: number // 100, doubling to 30 s (S28)
  readonly maxAttempts: number // 5 (S28)
  readonly maxDeliveries: number // 20 (S28)
  readonly poisonDeaths: number // 2: deaths at which a suspect group splits (S27)
  readonly maxQuarantinedItems: number // 1,000: at more the oldest goes (S27)
  readonly maxBatchBytes: number // 8 MiB (S19)
  readonly maxQueuedItems: number // S34
  readonly maxQueuedTokens: number // S34
  readonly maxItemBytes: number // 1 MiB (S34)
  readonly maxUnreadResultBytes: number // 1 GiB (S34)
  readonly resultsTtlMs: number // S36
  /** Distinguishes lives of the broker in lease ids (S26); random, given from outside. */
  readonly brokerLife: bigint
  /** Seed of the id digests (S36), given from outside: the core draws no random number. */
  readonly hashSeed: number
  /**
   * Token ids are neither given nor kept, though their bytes count for every limit: a simulation
   * knows lengths only. Default: false.
   */
  readonly lengthsOnly?: boolean
  /** Bytes of a segment of item records. Default: 4 MiB; tests fill and leave smaller ones. */
  readonly segmentBytes?: number
}

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

/**
 * One batch, decided. `items` and the object itself are borrowed: valid until the next `dispatch`
 * step. Items stand in row order.
 */
export interface DispatchEffect {
  readonly type: 'dispatch'
  readonly batch: number
  readonly consumer: number
  readonly model: number
  readonly items: Int32Array // slots, [size]
  readonly size: number
  readonly paddedLength: number
  readonly actualTokens: number
  readonly budgetTokens: number
  /** budgetTokens over the contract's tokens (S22). */
  readonly fill: number
  readonly closedBy: ClosedBy
  readonly source: Source
  readonly sources: Readonly<Record<Source, number>>
  readonly cleanup: boolean
  readonly normal: boolean
  /** Highest delivery count in the batch, 1 for the first. */
  readonly attempt: number
  /** The group that it is, or null: suspects of a death, or half of what was too much (S27, S28). */
  readonly group: number | null
}

/** `out_of_memory`: maxAttempts times a device had no room for the item alone (S28). */
export type SettleReason =
  | 'result'
  | 'max_attempts'
  | 'max_deliveries'
  | 'out_of_memory'
  | 'cancelled'
  | 'expired'
  | 'poison'

/** A consumer that died of what it had taken (S27). */
export interface Death {
  readonly consumer: string
  readonly at: number
  readonly cause: DeathCause
}

/** An item that killed its consumers, with all that is needed to submit it again (S27). */
export interface QuarantinedItem {
  /** Its sequence number: what it is called by. */
  readonly item: number
  readonly job: number
  readonly model: number
  readonly length: number
  readonly id: Uint8Array
  readonly tokens: Int32Array
  readonly payload: Uint8Array
  readonly attempts: number
  readonly deliveries: number
  readonly acceptedAt: number
  readonly quarantinedAt: number
  readonly deaths: readonly Death[]
}

export type Effect =
  | { readonly type: 'gate'; readonly reason: GateReason; readonly heldNs: number }
  | { readonly type: 'activate'; readonly model: number; readonly paddedLength: number }
  /** Answers a submit: one code per item; after the first SUBMIT_QUEUE_FULL all are that. */
  | {
      readonly type: 'submitted'
      readonly job: number
      readonly codes: Uint8Array
      readonly accepted: number
      /** Set when something was refused for room: when to come back. */
      readonly retryAfterMs: number
    }
  /** Answers an admit: as `submitted`, with the number of each item, 0 where it was refused. */
  | {
      readonly type: 'admitted'
      readonly job: number
      readonly codes: Uint8Array
      readonly sequences: Float64Array
      readonly accepted: number
      readonly retryAfterMs: number
    }
  /**
   * Items of a job and disk shape are wanted in memory: about `tokens`, at most `maxBytes`. The shell
   * answers with `loaded`, then dispatches anew.
   */
  | {
      readonly type: 'load'
      readonly job: number
      readonly model: number
      readonly paddedLength: number
      readonly tokens: number
      readonly maxBytes: number
    }
  /** A flushed job got new items on disk: its input goes on. */
  | { readonly type: 'reopened'; readonly job: number }
  /** Items that should be on disk could not be read back: they count as failed. */
  | {
      readonly type: 'lost'
      readonly job: number
      readonly model: number
      readonly paddedLength: number
      readonly items: number
    }
  | { readonly type: 'registered'; readonly consumer: number; readonly warnings: readonly string[] }
  | {
      readonly type: 'registerRefused'
      readonly consumer: number
      readonly code: string
      readonly message: string
      readonly field: string
    }
  | DispatchEffect
  /**
   * Items that ended, all of one batch (or batch null when none held them). The slots can be read
   * until the next step; then the core uses them anew. `index[i]` is the item's place in the batch,
   * so that its result can be found in the message that settled it.
   */
  | {
      readonly type: 'settle'
      readonly consumer: number | null
      readonly batch: number | null
      readonly items: Int32Array
      readonly index: Uint32Array
      readonly status: readonly SettledStatus[] // [items.length]
      /** `result`: as the consumer said. Else why the broker itself ended them. */
      readonly reason: SettleReason
    }
  /**
   * Items that ended on disk: cancelled, past their deadline (S35), or by a result of an earlier life
   * (S26). Only the store knows their ids; the shell settles them there.
   */
  | {
      readonly type: 'endedOnDisk'
      readonly job: number
      readonly model: number
      readonly paddedLength: number
      readonly sequences: readonly number[]
      readonly status: Exclude<SettledStatus, 'quarantined'>
    }
  | { readonly type: 'batchDone'; readonly consumer: number; readonly batch: number }
  /** Results dropped because their item had ended, or their lease is unknown (S26). */
  | {
      readonly type: 'late'
      readonly consumer: number
      readonly batch: number
      readonly items: number
      /** Their places in the batch, [items]. */
      readonly index: Uint32Array
      readonly unknownLease: boolean
    }
  | { readonly type: 'dead'; readonly consumer: number; readonly cause: DeathCause }
  | {
      readonly type: 'reclaim'
      readonly consumer: number
      readonly batches: readonly number[]
      readonly items: number
      /** Those items, [items]; read as a settle effect's. */
      readonly slots: Int32Array
    }
  /** Told before the settle effect of the item, whose slot can be read as long as that one's. */
  | {
      readonly type: 'quarantine'
      readonly slot: number
      readonly item: number
      readonly deaths: readonly Death[]
    }
  /** Answers a replay: a submit code for each item that was known, and its number from now on, or 0. */
  | {
      readonly type: 'replayed'
      readonly items: readonly number[]
      readonly numbers: readonly number[]
      readonly codes: Uint8Array
    }
  /** The consumer's budget was halved for a while, or is whole again (S28). */
  | { readonly type: 'budget'; readonly consumer: number; readonly tokens: number }
  /** The shell must close this connection: its leases are gone (S24). */
  | { readonly type: 'close'; readonly consumer: number; readonly cause: DeathCause }
  | {
      readonly type: 'cleanup'
      readonly model: number
      readonly state: 'begin' | 'end'
      readonly batches: number
      readonly items: number
      readonly ns: number
    }
  /** The job is flushed and all its items have ended. */
  | { readonly type: 'jobEnded'; readonly job: number }

/** A step was asked for something that only a defect in the caller can ask for. */
export class CoreBug extends Error {}

/** What a pass over a part of the item table has found (S35). */
export interface FoundItems {
  readonly slots: readonly number[]
  /** Sequence numbers: a slot may have another tenant when it is used. */
  readonly numbers: readonly number[]
  /** Where to go on, or -1: that was all. */
  readonly next: number
}

/** Where an item is and what it waits for. Times are on the core's clock. */
export type Explanation =
  | {
      readonly state: 'queued'
      readonly tier: 'staging' | 'lane' | 'reclaimed'
      readonly paddedLength: number
      /** Items that wait in staging or lane of its shape, and how many make it ready. */
      readonly shapeItems: number
      /** Null: no registered consumer of the model holds one. */
      readonly neededItems: number | null
      readonly consumers: number
      readonly inCleanup: boolean
      readonly inputEnded: boolean
      readonly gate: CoreCounts['gate']
    }
  | {
      readonly state: 'grouped'
      readonly kind: 'suspect' | 'half'
      readonly group: number
      readonly items: number
      readonly deaths: readonly Death[]
      readonly consumers: number
      /** Until then it waits for a consumer other than the last that it killed, or null. */
      readonly anotherConsumerUntil: number | null
      readonly gate: CoreCounts['gate']
    }
  | { readonly state: 'retrying'; readonly dueAt: number }
  | { readonly state: 'held'; readonly reason: 'results_unread' | 'paused' }
  | {
      readonly state: 'leased'
      readonly consumer: string
      readonly batch: number
      readonly batchItems: number
      /** Null: it stands in the consumer's channel. */
      readonly takenAt: number | null
    }

export interface ItemFacts {
  readonly item: number
  readonly model: number
  readonly length: number
  readonly attempts: number
  readonly deliveries: number
  readonly acceptedAt: number
  readonly deadlineAt: number | null
  readonly why: Explanation
}

/** Where the records of some items lie, one row each. */
export interface RecordColumns {
  /** Number of the arena segment (`ItemView.segment`); the offset counts in its bytes. */
  readonly segment: Uint32Array
  readonly byteOffset: Uint32Array
  /** Bytes of token ids: 4 x length, or 0 for an item with a payload. The id follows, then the payload. */
  readonly tokenBytes: Uint32Array
  readonly idBytes: Uint32Array
  readonly payloadBytes: Uint32Array
}

/** Read access to the item table for the shell. A slot is valid as the effects say. */
export interface ItemView {
  /** For the items of a batch at once, which is cheaper than one after the other. */
  readRecords(slots: Int32Array, into: RecordColumns): void
  segment(number: number): Uint8Array
  /** The arena segment that holds the item's record; the offsets below count in its bytes. */
  segmentBytes(slot: number): Uint8Array
  /** The same segment as 32-bit words: tokens begin at `tokensOffset(slot) / 4`. */
  segmentWords(slot: number): Int32Array
  tokensOffset(slot: number): number
  /** Bytes of token ids: 4 x length, or 0 for an item with a payload. */
  tokensBytes(slot: number): number
  idOffset(slot: number): number
  idBytes(slot: number): number
  payloadOffset(slot: number): number
  /** 0 when the item has no payload. */
  payloadBytes(slot: number): number
  /** Length in tokens (actual, not padded). */
  length(slot: number): number
  job(slot: number): number
  model(slot: number): number
  /** Failures so far (S28). */
  attempts(slot: number): number
  /** Times that a consumer took a batch with it (S25). */
  deliveries(slot: number): number
  /** Time of acceptance, ns. */
  acceptedAt(slot: number): number
  /** It was on disk before its producer was told, and is settled there. */
  durable(slot: number): boolean
  /** The item's number, never used again. */
  sequence(slot: number): number
}

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

export interface ModelCounts {
  readonly model: number
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
