// Settlement: an item ends exactly once (S23, I1).
//
// Rows of ended items are freed by the step after, so that the shell can still read ids and jobs
// while it tells the producers.

import { CoreBug } from './core-bug.js'
import { dropDeadline } from './deadlines.js'
import type { SettledStatus, SettleReason } from './effects.js'
import { ITEM_ENDED } from './items.js'
import { jobOfItem, touchJob } from './jobs.js'
import { dropOwnWait } from './own-waits.js'
import { dropShapeIfUnused, shapeOfItem } from './shapes.js'
import type { State } from './state.js'

interface Ends {
  readonly slots: number[]
  readonly indexes: number[]
  readonly status: SettledStatus[]
}

/** Items of one batch (or of none) that end in one step, told by reason. */
export class Settlement {
  private readonly byReason = new Map<SettleReason, Ends>()

  constructor(
    private readonly state: State,
    private readonly consumer: number | null,
    private readonly batch: number | null,
  ) {}

  /** Ends an item that no queue and no batch holds any more. */
  end(slot: number, index: number, status: SettledStatus, reason: SettleReason = 'result'): void {
    endItem(this.state, slot, status)
    let ends = this.byReason.get(reason)
    if (ends === undefined) {
      ends = { slots: [], indexes: [], status: [] }
      this.byReason.set(reason, ends)
    }
    ends.slots.push(slot)
    ends.indexes.push(index)
    ends.status.push(status)
  }

  tell(): void {
    for (const [reason, { slots, indexes, status }] of this.byReason) {
      this.state.effects.push({
        type: 'settle',
        consumer: this.consumer,
        batch: this.batch,
        items: new Int32Array(slots),
        index: new Uint32Array(indexes),
        status,
        reason,
      })
    }
  }
}

function endItem(state: State, slot: number, status: SettledStatus): void {
  const { items } = state
  if (items.state.get(slot) === ITEM_ENDED) {
    throw new CoreBug(`item ${items.sequence.get(slot)} settles twice`)
  }
  const job = jobOfItem(state, slot)
  items.state.set(slot, ITEM_ENDED)
  state.settled[status]++
  job.settled[status]++
  // The store knows the ids of durable items (S36).
  const isKnownHere = items.durable.get(slot) === 0 || state.isDiskASpill
  if (isKnownHere) job.ids.settle(items.sequence.get(slot), state.now)
  dropDeadline(state, slot)
  if (state.excused.size > 0) state.excused.delete(slot)
  dropOwnWait(state, slot)
  state.endedItems.push(slot)
  touchJob(state, job)
}

/** Frees what the last step ended and the shell has read by now. */
export function freeEnded(state: State): void {
  for (const slot of state.endedItems) {
    const shape = shapeOfItem(state, slot)
    shape.items--
    state.items.free(slot)
    dropShapeIfUnused(state, shape)
  }
  state.endedItems.length = 0
  for (const job of state.deletedJobs) {
    job.ids.release()
    state.jobRows[job.row] = null
    state.freeJobRows.push(job.row)
  }
  state.deletedJobs.length = 0
}
