// Deleting a job: whatever of it has not ended is cancelled, then nothing of it is known (S36).
//
// One pass over the item table finds the items; a list per job would cost eight bytes per item and
// a cache miss per settlement to make a rare command faster.

import { changePart, dropPartIfUnused } from './disk.js'
import { ITEM_ENDED, ITEM_LEASED } from './items.js'
import { createJob, type Job, jobById } from './jobs.js'
import type { Batch } from './lease-table.js'
import { pullOut } from './leases.js'
import { endLoad } from './read-ahead.js'
import { Settlement } from './settle.js'
import type { State } from './state.js'
import { changeWaiting } from './waiting.js'

/** The default job is emptied, and stays. */
const DEFAULT_JOB = 0

export function deleteJob(state: State, id: number): void {
  const job = jobById(state, id)
  if (job.waiting + job.leased > 0) cancelItems(state, job)
  cancelOnDisk(state, job)
  state.timers.close(job.idTimer)
  state.timers.clear(state.gate.timer)
  state.jobs.delete(id)
  state.deletedJobs.push(job)
  if (id === DEFAULT_JOB) createJob(state, DEFAULT_JOB)
}

function cancelItems(state: State, job: Job): void {
  const { items } = state
  const waiting = new Settlement(state, null, null)
  const leased = new Map<Batch, Settlement>()
  items.forEach((slot) => {
    if (items.job.get(slot) !== job.row || items.state.get(slot) === ITEM_ENDED) return
    if (items.state.get(slot) !== ITEM_LEASED) {
      pullOut(state, slot)
      waiting.end(slot, 0, 'cancelled', 'cancelled')
      return
    }
    const batch = state.leases.atRow(items.next.get(slot))
    const index = items.previous.get(slot)
    let settlement = leased.get(batch)
    if (settlement === undefined) {
      settlement = new Settlement(state, batch.consumer.id, batch.number)
      leased.set(batch, settlement)
    }
    pullOut(state, slot)
    settlement.end(slot, index, 'cancelled', 'cancelled')
  })
  waiting.tell()
  for (const settlement of leased.values()) settlement.tell()
}

/** Items without a row end by their counts alone (S36); what is being read of them is dropped. */
function cancelOnDisk(state: State, job: Job): void {
  for (const part of [...job.parts]) {
    const { items, tokens, shape } = part
    endLoad(state, part)
    changePart(state, part, -items, -tokens)
    changeWaiting(state, job, shape.model, -items, -tokens)
    state.settled.cancelled += items
    job.settled.cancelled += items
    dropPartIfUnused(state, part)
  }
}
