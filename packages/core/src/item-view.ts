// Read access to the item table for the shell (types.ts, ItemView).

import type { State } from './state.js'
import type { ItemView } from './types.js'

export function itemView(state: State): ItemView {
  const { items } = state
  const idOffset = (slot: number) => items.offset.get(slot) + items.tokensBytes(slot)
  return {
    readRecords: (slots, into) => items.readRecords(slots, into),
    segment: (row) => items.arena.segment(row).bytes,
    segmentBytes: (slot) => items.arena.segment(items.segment.get(slot)).bytes,
    segmentWords: (slot) => items.arena.segment(items.segment.get(slot)).words,
    tokensOffset: (slot) => items.offset.get(slot),
    tokensBytes: (slot) => items.tokensBytes(slot),
    idOffset,
    idBytes: (slot) => items.idBytes.get(slot),
    payloadOffset: (slot) => idOffset(slot) + items.idBytes.get(slot),
    payloadBytes: (slot) => items.payloadBytes.get(slot),
    length: (slot) => items.length.get(slot),
    job: (slot) => state.jobRows[items.job.get(slot)]!.id,
    model: (slot) => state.shapes[items.shape.get(slot)]!.model.id,
    attempts: (slot) => items.attempts.get(slot),
    deliveries: (slot) => items.deliveries.get(slot),
    acceptedAt: (slot) => items.acceptedAt.get(slot),
    durable: (slot) => items.durable.get(slot) === 1,
    sequence: (slot) => items.sequence.get(slot),
  }
}
