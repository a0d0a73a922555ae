// Bodies of the HTTP interface, as both sides see them (interfaces.md).
import type { ErrorBody } from './errors.js'

/** One item of POST /v1/items: `tokens`, or `payload` with the `length` it stands for. */
export interface ItemInput {
  readonly id: string
  /** Default 0, or the job's model. */
  readonly model?: number
  readonly tokens?: readonly number[]
  /** Base64. */
  readonly payload?: string
  readonly length?: number
  readonly job?: string
  /** Time to be done in, from acceptance; then it expires (S35). */
  readonly deadlineMs?: number
  /** How long it may be held back for a fuller batch; default: as its job (S16). */
  readonly maxWaitMs?: number
  /** Default: the request's, which is true in disk mode. False: in memory, lost with the broker. */
  readonly durable?: boolean
}

/** One answer per item, in order. */
export type ItemAnswer =
  | { readonly id: string; readonly status: 'accepted' | 'duplicate' }
  | {
      readonly id: string | null
      readonly status: 'refused'
      readonly error: ErrorBody & { readonly line?: number }
    }

export interface ItemsResponse {
  readonly accepted: number
  readonly duplicate: number
  readonly refused: number
  readonly items: readonly ItemAnswer[]
  /** Set when something was refused for room, milliseconds. */
  readonly retryAfterMs?: number
}

export interface JobInfo {
  readonly id: string
  readonly model: number | null
  /** Its share where jobs meet in a shape: a job of weight 3 gets 3 tokens to another's 1 (S20a). */
  readonly weight: number
  /** How long its items may be held back, 0 = any time; absent: the broker's maxWaitMs (S16). */
  readonly maxWaitMs?: number
  readonly createdAt: string
  /** `cancelled`: ended by DELETE, until it is deleted or resultsTtlMs ends. */
  readonly state: 'open' | 'flushed' | 'ended' | 'cancelled'
  readonly paused?: boolean
  readonly accepted: number
  readonly settled: {
    readonly completed: number
    readonly failed: number
    readonly cancelled: number
    readonly expired: number
    readonly quarantined: number
  }
  readonly waiting: number
  readonly leased: number
  readonly unreadResultBytes: number
}

/** GET /v1/items/{id}: an item that has not ended, and what it waits for. */
export interface ItemInfo {
  readonly id: string
  readonly job: string
  readonly model: number
  readonly length: number
  readonly attempts: number
  readonly deliveries: number
  readonly ageMs: number
  readonly expiresInMs?: number
  readonly state: 'queued' | 'grouped' | 'retrying' | 'held' | 'leased' | 'on_disk'
  /** In words: "staging: 12 of 64 for its shape (40 tokens)". */
  readonly why: string
  /** What the words are made of. */
  readonly facts: unknown
}

/** One item of GET /v1/quarantine (S27). */
export interface QuarantineEntry {
  readonly job: string
  readonly id: string
  readonly model: number
  readonly length: number
  readonly deliveries: number
  readonly quarantinedAt: string
  readonly deaths: readonly {
    readonly consumer: string
    readonly at: string
    readonly cause: string
  }[]
}

/** A float32 row or opaque bytes under `encoding=base64`. */
export interface EncodedValue {
  readonly dtype: 'float32' | 'bytes'
  readonly base64: string
}

/** One line of GET /v1/jobs/{id}/results. */
export interface ResultLine {
  /** Place in the job's result log; `offset=` of the next request goes on behind it. */
  readonly offset: number
  readonly id: string
  readonly status: 'completed' | 'failed' | 'expired' | 'cancelled' | 'quarantined'
  readonly attempts: number
  /** A float32 row is an array of numbers, or an EncodedValue under `encoding=base64`. */
  readonly result?: unknown
  readonly error?: ErrorBody
  /** Tokens that the runtime kept, when it cut the input. */
  readonly truncatedTo?: number
}
