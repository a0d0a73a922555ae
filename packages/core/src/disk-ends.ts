// Items that end while they are on disk alone: cancelled, past their deadline (S35), or by a result of
// an earlier life of the broker (S26).
//
// They have no row: their part of a shape counts one less, and the shell settles them in the store. A
// part is read in the order of numbers, so the last number read says which items are in memory: those
// are left alone here. A read that is under way may still bring what has ended; it is dropped then.

import { changePart, dropPartIfUnused, findPart } from './disk.js'
import type { SettledStatus } from './effects.js'
import { touchJob } from './jobs.js'
import { keyOfLength } from './shapes.js'
import type { State } from './state.js'
import { changeWaiting } from './waiting.js'

export interface DiskPlace {
  readonly job: number
  readonly model: number
  readonly paddedLength: number
}

/** `lengths[i]` is the length of item `sequences[i]`. Answers whether any ended. */
export function endOnDisk(
  state: State,
  { job: jobId, model: modelId, paddedLength }: DiskPlace,
  sequences: readonly number[],
  lengths: readonly number[],
  status: Exclude<SettledStatus, 'quarantined'>,
): boolean {
  const job = state.jobs.get(jobId)
  const model = state.models.get(modelId)
  const shape = model?.shapes.get(keyOfLength(state, paddedLength))
  if (job === undefined || model === undefined || shape === undefined) return false
  const part = findPart(job, shape, paddedLength)
  if (part === undefined) return false
  const ended: number[] = []
  sequences.forEach((sequence, i) => {
    if (sequence <= part.readUpTo || part.items === 0 || part.skipped?.has(sequence)) return
    part.skipped ??= new Set()
    part.skipped.add(sequence)
    ended.push(sequence)
    state.diskDeadlines.remove(sequence)
    changePart(state, part, -1, -lengths[i])
    changeWaiting(state, job, model, -1, -lengths[i])
    state.settled[status]++
    job.settled[status]++
    if (state.isDiskASpill) job.ids.settle(sequence, state.now)
  })
  if (ended.length === 0) return false
  state.effects.push({
    type: 'endedOnDisk',
    job: jobId,
    model: modelId,
    paddedLength,
    sequences: ended,
    status,
  })
  touchJob(state, job)
  dropPartIfUnused(state, part)
  return true
}
