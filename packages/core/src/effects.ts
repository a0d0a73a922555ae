// What comes out of the scheduling core: what the shell is to do and to tell.

export type GateReason = 'threshold' | 'disk' | 'flush' | 'max_hold' | 'full' | 'due'
export type ClosedBy = 'token_limit' | 'item_limit' | 'byte_limit' | 'lane_empty' | 'alone'
export type Source = 'reclaimed' | 'due' | 'disk' | 'lane' | 'staging'
export type DeathCause = 'connection_closed' | 'lease_timeout' | 'lease_max' | 'protocol_error'
export type SettledStatus = 'completed' | 'failed' | 'expired' | 'cancelled' | 'quarantined'

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
