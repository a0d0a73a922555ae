// What the core says of an item when it is asked (explain.ts, find.ts).

import type { CoreCounts } from './core-counts.js'
import type { Death } from './effects.js'

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
      /** When it is held back no longer (S16), or null: it has no wait. */
      readonly dueAt: number | null
      /** Batches of the model since its shape was served, and how many make it due; null: it has a wait. */
      readonly passedOver: { readonly batches: number; readonly limit: number } | null
      /** Its shape is due, by this item or another. */
      readonly isShapeDue: boolean
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
