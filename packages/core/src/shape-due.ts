// Whether a shape is due, and since when (S16; due.ts).

import type { OwnDue } from './own-waits.js'

const NEVER = Number.POSITIVE_INFINITY

/** Where a shape's new work waits: staging and lane, or the disk tier. Each is passed over by itself. */
export type Tier = 'queue' | 'disk'

/** A shape's share of S16. */
export class ShapeDue {
  /** Handle of its timer, or -1. */
  timer = -1
  /** Nothing of it is due before, unless it has a wait of its own. */
  checkAt = NEVER
  /** Due time of its oldest item, when that is past. */
  oldestAt = NEVER
  /** Since when what it has in a tier counts as passed over for long. */
  readonly starvedAt: Record<Tier, number> = { queue: NEVER, disk: NEVER }
  /** Items whose own wait is over, or null when none ever had one. */
  own: OwnDue | null = null
  /** In the list of shapes to be looked at. */
  noted = false
  /** An item of it is due by a time that its submission or job has set: the gate opens for it (S10). */
  opensGate = false

  get isDue(): boolean {
    return this.oldestAt < NEVER || this.isStarved || (this.own?.size ?? 0) > 0
  }

  get isStarved(): boolean {
    return this.firstStarvedAt < NEVER
  }

  get firstStarvedAt(): number {
    return Math.min(this.starvedAt.queue, this.starvedAt.disk)
  }

  /** Nothing of it is due, and nothing will be by itself. */
  get isIdle(): boolean {
    return !this.isDue && this.timer < 0 && !this.noted && this.checkAt === NEVER && !this.opensGate
  }

  get ownAt(): number {
    return this.own === null ? NEVER : this.own.firstAt
  }
}
