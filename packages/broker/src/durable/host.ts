// What the parts of disk mode use of the engine.
import type { CoreEvent, QuarantinedItem } from '@fabric/core'
import type { Clock } from '../clock.js'
import type { JobTable } from '../jobs.js'
import type { Stats } from '../stats.js'
import type { Store } from '../storage/store.js'
import type { Story } from '../story.js'

export interface DurableHost {
  readonly store: Store
  readonly jobs: JobTable
  readonly stats: Stats
  readonly story: Story
  readonly clock: Clock
  /** The core's, by number. */
  readonly quarantined: ReadonlyMap<number, QuarantinedItem>
  /** One event of the core, then whatever it made possible. */
  run(event: CoreEvent): void
  /** Batches wait until it is called again: too much waits for the disk, or does no more. */
  hold(waits: boolean): void
}
