// Deadlines while an item is on disk: it expires on time there, and no read waits for it (S35).

import type { DiskPart } from './disk.js'
import { endOnDisk } from './disk-ends.js'
import type { State } from './state.js'

/** `at` 0 = none. */
export function setDiskDeadline(
  state: State,
  part: DiskPart,
  sequence: number,
  length: number,
  at: number,
): void {
  if (at === 0) return
  const { diskDeadlines } = state
  const { job, shape, paddedLength } = part
  diskDeadlines.add({ job: job.id, model: shape.model.id, paddedLength, sequence, length }, at)
  arm(state)
}

/** The item is on disk alone no more. */
export function dropDiskDeadline(state: State, sequence: number): void {
  if (state.diskDeadlines.size === 0) return
  state.diskDeadlines.remove(sequence)
  arm(state)
}

export function dropDiskDeadlinesOfJob(state: State, job: number): void {
  state.diskDeadlines.removeJob(job)
  arm(state)
}

/** Ends those whose time has come, each on its own: they are told in the order of their deadlines. */
export function onDiskDeadline(state: State): void {
  const { diskDeadlines } = state
  while (diskDeadlines.firstAt <= state.now) {
    const { job, model, paddedLength, sequence, length } = diskDeadlines.take()
    endOnDisk(state, { job, model, paddedLength }, [sequence], [length], 'expired')
  }
  arm(state)
}

function arm(state: State): void {
  const { timer, firstAt } = state.diskDeadlines
  if (firstAt === Number.POSITIVE_INFINITY) state.timers.clear(timer)
  else if (state.timers.at(timer) !== firstAt || !state.timers.isSet(timer))
    state.timers.set(timer, firstAt)
}
