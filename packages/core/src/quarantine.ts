// Quarantine: items that killed their consumers, kept for whoever looks into it (S27).
//
// An entry is a copy: an item's own record would hold its whole arena segment, 4 MiB, for as long as
// nobody looks. At `maxQuarantinedItems` the oldest entry goes and is counted; its result stays.

import { Cut } from './cut.js'
import type { Death, QuarantinedItem } from './effects.js'
import { type Job, jobById } from './jobs.js'
import { hasRoom } from './limits.js'
import type { Settlement } from './settle.js'
import { shapeOfItem } from './shapes.js'
import type { State } from './state.js'
import {
  SUBMIT_ACCEPTED,
  SUBMIT_QUEUE_FULL,
  SUBMIT_RESULTS_UNREAD,
  type SubmitBlock,
} from './submission.js'
import { acceptAgain } from './submit.js'

/** Ends an item that stands nowhere, and keeps a copy of it with the evidence. */
export function quarantine(
  state: State,
  slot: number,
  place: number,
  deaths: readonly Death[],
  settlement: Settlement,
): void {
  const { entries } = state.quarantine
  const entry = copyOf(state, slot, deaths)
  entries.set(entry.item, entry)
  if (entries.size > state.config.maxQuarantinedItems) {
    for (const oldest of entries.keys()) {
      entries.delete(oldest)
      state.quarantine.dropped++
      break
    }
  }
  state.effects.push({ type: 'quarantine', slot, item: entry.item, deaths })
  settlement.end(slot, place, 'quarantined', 'poison')
}

function copyOf(state: State, slot: number, deaths: readonly Death[]): QuarantinedItem {
  const { items } = state
  const { bytes, words } = items.arena.segment(items.segment.get(slot))
  const offset = items.offset.get(slot)
  const tokens = items.tokensBytes(slot) / 4
  const idAt = offset + tokens * 4
  const payloadAt = idAt + items.idBytes.get(slot)
  return {
    item: items.sequence.get(slot),
    job: state.jobRows[items.job.get(slot)]!.id,
    model: shapeOfItem(state, slot).model.id,
    length: items.length.get(slot),
    id: bytes.slice(idAt, payloadAt),
    tokens: words.slice(offset >>> 2, (offset >>> 2) + tokens),
    payload: bytes.slice(payloadAt, payloadAt + items.payloadBytes.get(slot)),
    attempts: items.attempts.get(slot),
    deliveries: items.deliveries.get(slot),
    acceptedAt: items.acceptedAt.get(slot),
    quarantinedAt: state.now,
    deaths,
  }
}

/** Entries of an earlier life; at more than `maxQuarantinedItems` the oldest go. */
export function restoreQuarantine(state: State, found: readonly QuarantinedItem[]): void {
  const { entries } = state.quarantine
  const most = state.config.maxQuarantinedItems
  for (const entry of found.slice(-most)) entries.set(entry.item, entry)
  state.quarantine.dropped += Math.max(0, found.length - most)
}

/** Accepts entries anew: each as an item of its job, with a number of its own. */
export function replay(state: State, wanted: readonly number[]): void {
  const { entries } = state.quarantine
  const known = wanted.filter((number) => entries.has(number))
  const numbers: number[] = []
  const codes = Uint8Array.from(known, (number) => {
    const code = replayOne(state, entries.get(number)!)
    numbers.push(code === SUBMIT_ACCEPTED ? state.items.lastSequence : 0)
    return code
  })
  state.effects.push({ type: 'replayed', items: known, numbers, codes })
}

function replayOne(state: State, entry: QuarantinedItem): number {
  const job = jobById(state, entry.job)
  if (job.resultsUnread) return SUBMIT_RESULTS_UNREAD
  if (!hasRoom(state, entry.length)) return SUBMIT_QUEUE_FULL
  state.quarantine.entries.delete(entry.item)
  const cut = new Cut(blockOf(entry), state.config.lengthsOnly === true)
  cut.next(0)
  acceptAgain(state, job, cut)
  return SUBMIT_ACCEPTED
}

function blockOf({ job, model, length, tokens, id, payload }: QuarantinedItem): SubmitBlock {
  return {
    job,
    count: 1,
    model: Int32Array.of(model),
    lengths: Int32Array.of(length),
    tokens,
    ids: id,
    idEnds: Uint32Array.of(id.length),
    payloads: payload.length > 0 ? payload : null,
    payloadEnds: payload.length > 0 ? Uint32Array.of(payload.length) : null,
  }
}

export function discard(state: State, numbers: readonly number[]): void {
  for (const number of numbers) state.quarantine.entries.delete(number)
}

/** A job that is deleted takes its quarantined items with it. */
export function discardOfJob(state: State, job: Job): void {
  if (job.settled.quarantined === 0) return
  const { entries } = state.quarantine
  for (const [number, entry] of entries) if (entry.job === job.id) entries.delete(number)
}
