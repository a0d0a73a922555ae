// What the engine is made of: the core it drives, and everything around it that it tells.
import type {
  CoreCounts,
  CoreEvent,
  DeathCause,
  Effect,
  FoundItems,
  ItemFacts,
  ItemView,
  QuarantinedItem,
  TierCounts,
} from '@fabric/core'
import type { Connection, ConsumerInfo } from './channels/connection.js'
import type { Clock } from './clock.js'
import type { JobTable } from './jobs.js'
import type { Stats } from './stats.js'
import type { Store } from './storage/store.js'
import type { Story } from './story.js'

/** What the engine uses of the core. */
export interface CoreFace {
  readonly items: ItemView
  readonly quarantined: ReadonlyMap<number, QuarantinedItem>
  find(job: number, ids: readonly Uint8Array[] | null, from?: number, rows?: number): FoundItems
  explain(slot: number): ItemFacts
  step(event: CoreEvent, now: number): readonly Effect[]
  spills(above: TierCounts): boolean
  nextTimerAt(): number
  counts(): CoreCounts
}

export type LostItems = Omit<Extract<CoreEvent, { type: 'lost' }>, 'type'>

export interface Consumer extends ConsumerInfo {
  readonly number: number
  readonly connection: Connection
  readonly registeredNs: number
}

/** Why the core lets a live consumer go. */
export const closingWords = (cause: DeathCause): string =>
  cause === 'lease_max'
    ? 'no batch was taken for leaseMaxMs, though one was there'
    : 'no renewal within leaseTimeoutMs'

export interface EngineParts {
  readonly core: CoreFace
  readonly clock: Clock
  readonly jobs: JobTable
  readonly stats: Stats
  readonly story: Story
  readonly brokerLife: bigint
  readonly channelDepth: number
  /** In memory mode: of the spill, or null. */
  readonly store: Store | null
  /** Disk mode's folder; null in memory mode. */
  readonly dataDir: string | null
  /** Memory mode with a spill: what may wait in memory. */
  readonly spillAbove: TierCounts | null
  /** A defect was found: the process must end, its state cannot be trusted. */
  readonly onBug: (error: unknown) => void
}
