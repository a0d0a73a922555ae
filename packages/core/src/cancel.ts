// Cancelling items, and deleting a job with whatever of it has not ended (S35, S36).

import { changePart, dropPartIfUnused } from './disk.js'
import { dropDiskDeadlinesOfJob } from './disk-deadlines.js'
import { endEarly } from './early-ends.js'
import { ITEM_ENDED } from './items.js'
import { createJob, type Job, jobById } from './jobs.js'
import { discardOfJob } from './quarantine.js'
import { endLoad } from './read-ahead.js'
import type { State } from './state.js'
import { changeWaiting } from './waiting.js'

/** The default job is emptied, and stays. */
const DEFAULT_JOB = 0

export function deleteJob(state: State, id: number): void {
  const job = jobById(state, id)
  const slots: number[] = []
  if (job.waiting + job.leased > 0) {
    state.items.forEach((slot) => {
      const isOfJob = state.items.job.get(slot) === job.row
      if (isOfJob && state.items.state.get(slot) !== ITEM_ENDED) slots.push(slot)
    })
  }
  endEarly(state, slots, 'cancelled')
  cancelOnDisk(state, job)
  dropDiskDeadlinesOfJob(state, id)
  discardOfJob(state, job)
  state.timers.close(job.idTimer)
  state.timers.clear(state.gate.timer)
  state.jobs.delete(id)
  state.deletedJobs.push(job)
  if (id === DEFAULT_JOB) createJob(state, DEFAULT_JOB)
}

/** A slot may have another tenant by now: then its number is another one, and it is left alone. */
export function cancel(state: State, slots: readonly number[], numbers: readonly number[]): void {
  const { items } = state
  endEarly(
    state,
    slots.filter((slot, i) => items.has(slot) && items.sequence.get(slot) === numbers[i]),
    'cancelled',
  )
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
