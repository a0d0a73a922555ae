// Rows of durable items: made when an item is read into the window, or at once for one with a wait of
// its own, which would be late behind a backlog (S16).

import type { Cut } from './cut.js'
import { setDeadlineAt } from './deadlines.js'
import { diskLength, findPart } from './disk.js'
import type { Job } from './jobs.js'
import type { Model } from './models.js'
import { setOwnWait } from './own-waits.js'
import { keyOfLength, shapeOf } from './shapes.js'
import type { State } from './state.js'
import { queueItem } from './waiting.js'

export interface DiskRow {
  readonly job: Job
  readonly model: Model
  readonly sequence: number
  readonly acceptedAt: number
  /** 0 = none. */
  readonly maxWaitMs: number
  /** 0 = none. */
  readonly deadlineAt: number
}

/** Puts the item that is cut into the window. It is counted as waiting already. */
export function makeRow(state: State, cut: Cut, row: DiskRow): void {
  const { items } = state
  const shape = shapeOf(state, row.model, cut.length)
  const slot = items.alloc(row.sequence)
  shape.items++
  items.durable.set(slot, 1)
  items.acceptedAt.set(slot, row.acceptedAt)
  items.length.set(slot, cut.length)
  items.shape.set(slot, shape.row)
  items.job.set(slot, row.job.row)
  items.store(slot, cut)
  setOwnWait(state, slot, row.maxWaitMs)
  queueItem(state, slot)
  if (row.deadlineAt > 0) setDeadlineAt(state, slot, row.deadlineAt)
}

/** The same for an item that was never on disk alone: a later read of its part skips it. */
export function makeRowAtOnce(state: State, cut: Cut, row: DiskRow): void {
  const { job, model, sequence } = row
  const shape = model.shapes.get(keyOfLength(state, cut.length))
  const part = shape === undefined ? undefined : findPart(job, shape, diskLength(cut.length))
  if (part !== undefined) {
    part.skipped ??= new Set()
    part.skipped.add(sequence)
  }
  makeRow(state, cut, row)
}

/** Tokens that may stand in the window because of waits of their own, beside what is read ahead. */
const AT_ONCE_TOKENS_MIN = 1024 * 1024

export function hasRoomAtOnce(state: State, length: number): boolean {
  const { readAheadTokens } = state.config
  const mostTokens = readAheadTokens + Math.max(readAheadTokens, AT_ONCE_TOKENS_MIN)
  return state.window.tokens + length <= mostTokens
}
