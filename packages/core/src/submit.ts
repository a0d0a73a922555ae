// Submission: which items of a block are accepted (S1, S34, S36).
//
// One rule for one item and for a list: each item is judged in its turn, and the first for which the
// queue has no room ends the block. A duplicate needs no room.

import { endCleanup } from './cleanup.js'
import { resumeInput } from './consumers.js'
import { Cut } from './cut.js'
import { setDeadline } from './deadlines.js'
import { bodyDigest } from './hash.js'
import { ID_SAME_BODY, ID_UNKNOWN } from './id-index.js'
import { type Job, jobById, reopenInput } from './jobs.js'
import { hasRoom, isTooLarge, refuseForRoom } from './limits.js'
import { AHEAD_ITEMS } from './look-ahead.js'
import type { Shape } from './models.js'
import { setOwnWait } from './own-waits.js'
import { modelOf, shapeOf } from './shapes.js'
import { NS_PER_MS, type State } from './state.js'
import {
  SUBMIT_ACCEPTED,
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
  SUBMIT_RESULTS_UNREAD,
  SUBMIT_TOO_LARGE,
  type SubmitBlock,
} from './submission.js'
import { changeWaiting, queueItem } from './waiting.js'

export function submit(state: State, block: SubmitBlock): void {
  const job = jobById(state, block.job)
  const codes = new Uint8Array(block.count)
  const lengthsOnly = state.config.lengthsOnly === true
  const cut = new Cut(block, lengthsOnly)
  const ahead = new Cut(block, lengthsOnly)
  const { lookAhead } = state
  let accepted = 0
  let at = 0
  for (; at < block.count; at++) {
    const place = at % AHEAD_ITEMS
    if (place === 0) {
      lookAhead.look(state, job, ahead, at, Math.min(block.count, at + AHEAD_ITEMS))
    }
    cut.next(at)
    codes[at] = submitOne(state, job, cut, place)
    if (codes[at] === SUBMIT_ACCEPTED) accepted++
    if (codes[at] === SUBMIT_QUEUE_FULL) break
  }
  const retryAfterMs = refuseForRoom(state, block, codes, at)
  state.effects.push({ type: 'submitted', job: job.id, codes, accepted, retryAfterMs })
}

/** `place`: where the item stands in what was looked at ahead. */
function submitOne(state: State, job: Job, cut: Cut, place: number): number {
  if (isTooLarge(state, cut.length, cut.idBytes, cut.payloadBytes)) return SUBMIT_TOO_LARGE
  const high = state.lookAhead.high[place]
  const low = state.lookAhead.low[place]
  const body = bodyOf(state, cut)
  const known = job.ids.lookup(high, low, body)
  if (known !== ID_UNKNOWN) return known === ID_SAME_BODY ? SUBMIT_DUPLICATE : SUBMIT_CONFLICT
  if (job.resultsUnread) return SUBMIT_RESULTS_UNREAD
  if (!hasRoom(state, cut.length)) return SUBMIT_QUEUE_FULL
  if (job.flushed) reopenInput(state, job)
  armIdTimer(state, job)
  job.ids.accept(high, low, body)
  accept(state, job, cut, state.lookAhead.shapes[place])
  return SUBMIT_ACCEPTED
}

function accept(state: State, job: Job, cut: Cut, known: Shape | undefined): void {
  const model = known === undefined ? modelOf(state, cut.model) : known.model
  // A new item ends its model's cleanup, before it is queued: it waits for a full batch (S32).
  endCleanup(state, model)
  resumeInput(state, model)
  admit(state, job, known ?? shapeOf(state, model, cut.length), cut)
}

/** Accepts a quarantined item anew: it is no new one for S32, nor new input of its job (S27). */
export function acceptAgain(state: State, job: Job, cut: Cut): void {
  const { block, idFrom, idTo } = cut
  state.idHash.digest(block.ids, idFrom, idTo)
  armIdTimer(state, job)
  job.ids.acceptAgain(state.idHash.high, state.idHash.low, bodyOf(state, cut))
  job.endTold = false
  admit(state, job, shapeOf(state, modelOf(state, cut.model), cut.length), cut)
}

function admit(state: State, job: Job, shape: Shape, cut: Cut): void {
  const { items } = state
  const slot = items.alloc()
  shape.items++
  items.acceptedAt.set(slot, state.now)
  items.length.set(slot, cut.length)
  items.shape.set(slot, shape.row)
  items.job.set(slot, job.row)
  items.store(slot, cut)
  setDeadline(state, slot, cut.deadlineMs)
  setOwnWait(state, slot, cut.maxWaitMs)
  state.acceptedItems++
  job.accepted++
  changeWaiting(state, job, shape.model, 1, cut.length)
  queueItem(state, slot, shape)
}

function bodyOf(state: State, cut: Cut): number {
  const { block } = cut
  return bodyDigest(
    state.config.hashSeed,
    cut.model,
    cut.length,
    block.tokens,
    cut.tokensFrom,
    cut.tokensTo,
    block.payloads,
    cut.payloadFrom,
    cut.payloadTo,
  )
}

export function armIdTimer(state: State, job: Job): void {
  if (state.timers.isSet(job.idTimer)) return
  state.timers.set(job.idTimer, state.now + state.config.resultsTtlMs * NS_PER_MS)
}

/** Time to forget ids of a job (S36). */
export function onIdTimer(state: State, jobRow: number): void {
  const job = state.jobRows[jobRow]!
  const ttlNs = state.config.resultsTtlMs * NS_PER_MS
  const again = job.ids.age(state.now, ttlNs, state.items.lastSequence)
  if (again >= 0) state.timers.set(job.idTimer, again)
}
