// The shadow's opinion of when an item is due (S16): by its own wait, or by what its job or the operator
// says. It shares no code with the core.

import type { CoreConfig } from '../../src/core-config.js'

export interface WaitingItem {
  readonly job: number
  readonly maxWaitMs: number
  acceptedAt: number
}

export class ShadowDue {
  private readonly jobs = new Map<number, number>()

  constructor(private readonly config: CoreConfig) {}

  createJob(job: number, maxWaitMs: number | undefined): void {
    if (maxWaitMs !== undefined) this.jobs.set(job, maxWaitMs)
  }

  /** When it may be held back no longer, or Infinity. */
  at(item: WaitingItem): number {
    const byJob = this.jobs.get(item.job) ?? this.config.maxWaitMs
    const wait = this.hasOwn(item) ? item.maxWaitMs : byJob
    return wait === 0 ? Number.POSITIVE_INFINITY : item.acceptedAt + wait * 1e6
  }

  /** An own wait counts where it is the shorter one. */
  hasOwn({ job, maxWaitMs }: WaitingItem): boolean {
    const byJob = this.jobs.get(job) ?? this.config.maxWaitMs
    return maxWaitMs > 0 && (byJob === 0 || maxWaitMs < byJob)
  }
}
