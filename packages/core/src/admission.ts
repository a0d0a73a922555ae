// Durable submissions, and what an earlier life left (storage modes, S34, S36).
//
// Two steps, because a sync lies between them: `admit` judges the items, numbers them and keeps room;
// once they are on disk, `stored` makes them wait. Whether an id is known is the store's to say, which
// knows the ids of earlier lives too; what the core adds are the ids of items that are not durable. In
// memory mode the disk is where the rest waits when memory is full: the same two steps, and the ids of
// both are the core's.

import { endCleanup } from './cleanup.js'
import { resumeInput } from './consumers.js'
import { Cut } from './cut.js'
import { changePart, diskLength, partOf } from './disk.js'
import { setDiskDeadline } from './disk-deadlines.js'
import { hasRoomAtOnce, makeRowAtOnce } from './disk-rows.js'
import type { SettledStatus } from './effects.js'
import { digestOf } from './hash.js'
import { resultsStored } from './holds.js'
import { ID_SAME_BODY, ID_UNKNOWN } from './id-index.js'
import { createJob, flush, type Job, jobById, reopenInput, touchJob } from './jobs.js'
import { hasRoom, isTooLarge, refuseForRoom } from './limits.js'
import type { Model } from './models.js'
import { modelOf } from './shapes.js'
import type { State } from './state.js'
import {
  type RestoredJob,
  type StoredItems,
  SUBMIT_ACCEPTED,
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
  SUBMIT_RESULTS_UNREAD,
  SUBMIT_TOO_LARGE,
  type SubmitBlock,
} from './submission.js'
import { armIdTimer } from './submit.js'
import { changeWaiting } from './waiting.js'

/** Judges, numbers and keeps room for the items of a durable submission; the store has the last word. */
export function admit(state: State, block: SubmitBlock): void {
  const job = jobById(state, block.job)
  const codes = new Uint8Array(block.count)
  const sequences = new Float64Array(block.count)
  const cut = new Cut(block, state.config.lengthsOnly === true)
  let accepted = 0
  let at = 0
  for (; at < block.count; at++) {
    cut.next(at)
    codes[at] = judge(state, job, cut)
    if (codes[at] === SUBMIT_QUEUE_FULL) break
    if (codes[at] !== SUBMIT_ACCEPTED) continue
    sequences[at] = ++state.items.lastSequence
    if (state.isDiskASpill) keepId(state, sequences[at], cut)
    if (cut.maxWaitMs > 0) state.admittedWaits.set(sequences[at], cut.maxWaitMs)
    reserve(state, job, 1, cut.length)
    accepted++
  }
  const retryAfterMs = refuseForRoom(state, block, codes, at)
  state.effects.push({ type: 'admitted', job: job.id, codes, sequences, accepted, retryAfterMs })
}

function judge(state: State, job: Job, cut: Cut): number {
  if (isTooLarge(state, cut.length, cut.idBytes, cut.payloadBytes)) return SUBMIT_TOO_LARGE
  if (job.ids.size > 0) {
    const { idHash } = state
    idHash.digest(cut.block.ids, cut.idFrom, cut.idTo)
    const known = job.ids.lookup(idHash.high, idHash.low, digestOf(state.config.hashSeed, cut))
    if (known !== ID_UNKNOWN) return known === ID_SAME_BODY ? SUBMIT_DUPLICATE : SUBMIT_CONFLICT
  }
  if (job.resultsUnread) return SUBMIT_RESULTS_UNREAD
  if (cut.maxWaitMs > 0 && !hasRoomAtOnce(state, cut.length)) return SUBMIT_QUEUE_FULL
  return hasRoom(state, cut.length) ? SUBMIT_ACCEPTED : SUBMIT_QUEUE_FULL
}

function takeWait(state: State, sequence: number): number {
  const maxWaitMs = state.admittedWaits.get(sequence) ?? 0
  if (maxWaitMs > 0) state.admittedWaits.delete(sequence)
  return maxWaitMs
}

/** An id of a spill: known here once the disk has the item, so that it may be sent again if it fails. */
function keepId(state: State, sequence: number, cut: Cut): void {
  const { idHash } = state
  idHash.digest(cut.block.ids, cut.idFrom, cut.idTo)
  const body = digestOf(state.config.hashSeed, cut)
  state.admittedIds.set(sequence, { high: idHash.high, low: idHash.low, body })
}

function learnId(state: State, job: Job | undefined, sequence: number, code: number): void {
  const id = state.admittedIds.get(sequence)
  if (id === undefined) return
  state.admittedIds.delete(sequence)
  if (job === undefined || code !== SUBMIT_ACCEPTED) return
  armIdTimer(state, job)
  job.ids.accept(id.high, id.low, id.body)
}

function reserve(state: State, job: Job, items: number, tokens: number): void {
  state.reserved.items += items
  state.reserved.tokens += tokens
  job.reserved += items
}

/** Gives the room of admitted items back; those that are on disk wait from now on. */
export function onStored(state: State, stored: StoredItems): void {
  const { job: id, model, lengths, sequences, codes, block = null } = stored
  const cut = block === null ? null : new Cut(block, state.config.lengthsOnly === true)
  // Its job may have been deleted while the disk was at work.
  const job = state.jobs.get(id)
  for (let at = 0; at < sequences.length; at++) {
    const sequence = sequences[at]
    cut?.next(at)
    if (sequence === 0) continue
    state.lastStored = sequence
    learnId(state, job, sequence, codes[at])
    const maxWaitMs = takeWait(state, sequence)
    if (state.early.delete(sequence)) continue
    state.reserved.items--
    state.reserved.tokens -= lengths[at]
    if (job === undefined || job.firstSequence > sequence) continue
    job.reserved--
    if (codes[at] !== SUBMIT_ACCEPTED) continue
    const shapeModel = modelOf(state, model[at])
    accept(state, job, shapeModel, sequence, lengths[at])
    const deadlineAt = stored.deadlineAt?.[at] ?? 0
    if (cut !== null && maxWaitMs > 0) {
      const row = { job, model: shapeModel, sequence, acceptedAt: state.now, maxWaitMs, deadlineAt }
      makeRowAtOnce(state, cut, row)
      continue
    }
    const part = partOf(state, job, shapeModel, diskLength(lengths[at]), sequence)
    changePart(state, part, 1, lengths[at])
    setDiskDeadline(state, part, sequence, lengths[at], deadlineAt)
  }
  if (job !== undefined) touchJob(state, job)
}

/**
 * What is read back may be on disk before the news of it: it is accepted then, and the news of it
 * later are none.
 */
export function acceptIfEarly(
  state: State,
  job: Job,
  model: Model,
  sequence: number,
  length: number,
): boolean {
  if (sequence <= state.lastStored) return false
  reserve(state, job, -1, -length)
  state.early.add(sequence)
  accept(state, job, model, sequence, length)
  return true
}

function accept(state: State, job: Job, model: Model, sequence: number, length: number): void {
  // An end of input that was told after the item was admitted is of it, too.
  if (job.flushed && sequence > job.flushedAt) {
    reopenInput(state, job)
    state.effects.push({ type: 'reopened', job: job.id })
  }
  // A new item ends its model's cleanup: it waits for a full batch (S32).
  endCleanup(state, model)
  resumeInput(state, model)
  state.acceptedItems++
  job.accepted++
  changeWaiting(state, job, model, 1, length)
}

/** What an earlier life left: jobs, their counts, and items that have not ended. */
export function restore(state: State, lastSequence: number, jobs: readonly RestoredJob[]): void {
  state.items.lastSequence = lastSequence
  state.lastStored = lastSequence
  for (const job of jobs) restoreJob(state, job)
}

function restoreJob(state: State, found: RestoredJob): void {
  if (!state.jobs.has(found.job)) createJob(state, found.job, found.weight, found.maxWaitMs)
  const job = jobById(state, found.job)
  for (const [status, items] of Object.entries(found.settled) as [SettledStatus, number][]) {
    job.settled[status] += items
    state.settled[status] += items
    job.accepted += items
    state.acceptedItems += items
  }
  for (const { model: id, paddedLength, items, tokens } of found.shapes) {
    const model = modelOf(state, id)
    state.acceptedItems += items
    job.accepted += items
    changeWaiting(state, job, model, items, tokens)
    changePart(state, partOf(state, job, model, paddedLength), items, tokens)
  }
  for (const { model, paddedLength, sequence, length, deadlineAt } of found.deadlines ?? []) {
    const part = partOf(state, job, modelOf(state, model), paddedLength)
    setDiskDeadline(state, part, sequence, length, deadlineAt)
  }
  if (found.unreadResultBytes > 0) resultsStored(state, job.id, found.unreadResultBytes)
  job.endTold = found.ended && job.waiting === 0
  if (found.flushed) flush(state, job.id)
}
