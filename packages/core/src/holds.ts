// A job on hold: its waiting items are not ready. Results that nobody reads put it there (S34), which
// also stops new items, or an operator's pause, which does not.
//
// They are moved aside, in their order. That costs a walk over the queues of the job's models, so a
// hold ends only when half of the limit is free: otherwise a slow reader would cause one walk per
// batch.

import { holdParts } from './disk.js'
import { type Job, jobById, jobOfItem } from './jobs.js'
import type { Queue } from './queue.js'
import type { ShapeQueue } from './shape-queue.js'
import type { State } from './state.js'
import { regroup } from './suspects.js'
import { count, queueItem, queueReclaimed, withdraw } from './waiting.js'

export function resultsStored(state: State, id: number, bytes: number): void {
  changeUnread(state, id, bytes)
}

export function resultsRead(state: State, id: number, bytes: number): void {
  changeUnread(state, id, -bytes)
}

function changeUnread(state: State, id: number, bytes: number): void {
  // The job may have been deleted while its last results were on their way to storage.
  const job = state.jobs.get(id)
  if (job === undefined) return
  const { maxUnreadResultBytes } = state.config
  job.unreadResultBytes = Math.max(0, job.unreadResultBytes + bytes)
  if (job.unreadResultBytes > maxUnreadResultBytes) job.resultsUnread = true
  if (job.unreadResultBytes <= maxUnreadResultBytes / 2) job.resultsUnread = false
  review(state, job)
}

export function pauseJob(state: State, id: number): void {
  setPaused(state, id, true)
}

export function resumeJob(state: State, id: number): void {
  setPaused(state, id, false)
}

function setPaused(state: State, id: number, paused: boolean): void {
  const job = jobById(state, id)
  job.paused = paused
  review(state, job)
}

function review(state: State, job: Job): void {
  const onHold = job.resultsUnread || job.paused
  if (onHold === job.onHold) return
  if (onHold) hold(state, job)
  else release(state, job)
}

function hold(state: State, job: Job): void {
  job.onHold = true
  regroup(state, job)
  for (const backlog of job.backlogs.values()) {
    const model = state.models.get(backlog.model)
    if (backlog.items === 0 || model === undefined) continue
    for (const shape of [...model.shapes.values()]) {
      moveReclaimedAside(state, job, shape.reclaimed)
      moveQueuedAside(state, job, shape.window)
      moveQueuedAside(state, job, shape.queue)
    }
  }
  holdParts(state, job, 1)
}

/** To queue an item of a job on hold puts it into the hold. */
function moveQueuedAside(state: State, job: Job, queue: ShapeQueue): void {
  for (let slot = queue.headOf(job.row); slot >= 0; slot = queue.headOf(job.row)) {
    withdraw(state, slot)
    queueItem(state, slot)
  }
}

function moveReclaimedAside(state: State, job: Job, queue: Queue): void {
  for (let slot = queue.head; slot >= 0; ) {
    const next = state.items.next.get(slot)
    if (jobOfItem(state, slot) === job) {
      withdraw(state, slot)
      queueReclaimed(state, slot)
    }
    slot = next
  }
}

function release(state: State, job: Job): void {
  job.onHold = false
  holdParts(state, job, -1)
  regroup(state, job)
  while (job.heldReclaimed.count > 0) moveBack(state, job.heldReclaimed, queueReclaimed)
  while (job.held.count > 0) moveBack(state, job.held, queueItem)
}

function moveBack(state: State, queue: Queue, requeue: (state: State, slot: number) => void): void {
  const slot = queue.head
  queue.remove(state.items, slot)
  count(state.tiers.held, state, slot, -1)
  requeue(state, slot)
}
