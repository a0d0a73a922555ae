// Read access to the item table for the shell.

import type { State } from './state.js'

/** Where the records of some items lie, one row each. */
export interface RecordColumns {
  /** Number of the arena segment (`ItemView.segment`); the offset counts in its bytes. */
  readonly segment: Uint32Array
  readonly byteOffset: Uint32Array
  /** Bytes of token ids: 4 x length, or 0 for an item with a payload. The id follows, then the payload. */
  readonly tokenBytes: Uint32Array
  readonly idBytes: Uint32Array
  readonly payloadBytes: Uint32Array
}

/** Read access to the item table for the shell. A slot is valid as the effects say. */
export interface ItemView {
  /** For the items of a batch at once, which is cheaper than one after the other. */
  readRecords(slots: Int32Array, into: RecordColumns): void
  segment(number: number): Uint8Array
  /** The arena segment that holds the item's record; the offsets below count in its bytes. */
  segmentBytes(slot: number): Uint8Array
  /** The same segment as 32-bit words: tokens begin at `tokensOffset(slot) / 4`. */
  segmentWords(slot: number): Int32Array
  tokensOffset(slot: number): number
  /** Bytes of token ids: 4 x length, or 0 for an item with a payload. */
  tokensBytes(slot: number): number
  idOffset(slot: number): number
  idBytes(slot: number): number
  payloadOffset(slot: number): number
  /** 0 when the item has no payload. */
  payloadBytes(slot: number): number
  /** Length in tokens (actual, not padded). */
  length(slot: number): number
  job(slot: number): number
  model(slot: number): number
  /** Failures so far (S28). */
  attempts(slot: number): number
  /** Times that a consumer took a batch with it (S25). */
  deliveries(slot: number): number
  /** Time of acceptance, ns. */
  acceptedAt(slot: number): number
  /** It was on disk before its producer was told, and is settled there. */
  durable(slot: number): boolean
  /** The item's number, never used again. */
  sequence(slot: number): number
}

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
