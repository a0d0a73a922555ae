// Columns made into one buffer that another thread reads, and taken apart there.
import type { SubmitBlock } from '@fabric/core'
import { type ItemColumns, tokenStartsOf } from './item-block.js'

// Packed items: u32 job, count, tokens, bytes of ids, bytes of payloads, flags; then the columns, in the
// order of `Columns`, each aligned to 8. Views would travel too, at the price of a clone for each.
const HEADER_BYTES = 32
const WITH_PAYLOADS = 1
const WITH_DEADLINES = 2

const align8 = (bytes: number) => (bytes + 7) & ~7

/** Views of the columns of packed items, one after the other. */
class Columns {
  #at = HEADER_BYTES

  constructor(readonly buffer: ArrayBufferLike) {}

  doubles(length: number): Float64Array {
    return new Float64Array(this.buffer, this.#next(8 * length), length)
  }

  ints(length: number): Int32Array {
    return new Int32Array(this.buffer, this.#next(4 * length), length)
  }

  words(length: number): Uint32Array {
    return new Uint32Array(this.buffer, this.#next(4 * length), length)
  }

  bytes(length: number): Uint8Array {
    return new Uint8Array(this.buffer, this.#next(length), length)
  }

  #next(bytes: number): number {
    const at = this.#at
    this.#at += align8(bytes)
    return at
  }
}

const idBytesOf = ({ count, idEnds }: SubmitBlock) => (count === 0 ? 0 : idEnds[count - 1])
const payloadBytesOf = ({ count, payloadEnds }: SubmitBlock) =>
  count === 0 ? 0 : (payloadEnds?.[count - 1] ?? 0)

/** At least what `packItems` needs. */
export function packedBytes(block: SubmitBlock): number {
  const { count, tokens } = block
  // Of count entries: one column of f64, six of 4 bytes at most.
  const columns = 8 * count + 6 * align8(4 * count)
  const data = align8(4 * tokens.length) + align8(idBytesOf(block)) + align8(payloadBytesOf(block))
  return HEADER_BYTES + columns + data
}

/** The block's columns copied into the buffer, of the job that is given. */
export function packItems(
  job: number,
  block: SubmitBlock,
  sequences: Float64Array,
  buffer: ArrayBufferLike,
): void {
  const { count, payloads, deadlineMs = null } = block
  const idBytes = idBytesOf(block)
  const payloadBytes = payloadBytesOf(block)
  const tokens = block.tokens.length
  const flags = (payloads === null ? 0 : WITH_PAYLOADS) | (deadlineMs === null ? 0 : WITH_DEADLINES)
  const header = new Uint32Array(buffer, 0, 6)
  header.set([job, count, tokens, idBytes, payloadBytes, flags])
  const items = unpackItems(buffer)
  items.sequences.set(sequences)
  items.model.set(block.model.subarray(0, count))
  items.lengths.set(block.lengths.subarray(0, count))
  items.idEnds.set(block.idEnds.subarray(0, count))
  items.payloadEnds?.set(block.payloadEnds!.subarray(0, count))
  items.deadlineMs?.set(deadlineMs!.subarray(0, count))
  tokenStartsOf(items, items.tokenStarts)
  items.tokens.set(block.tokens)
  items.ids.set(block.ids.subarray(0, idBytes))
  items.payloads?.set(payloads!.subarray(0, payloadBytes))
}

/** Views of the buffer. */
export function unpackItems(buffer: ArrayBufferLike): ItemColumns {
  const [job, count, tokens, idBytes, payloadBytes, flags] = new Uint32Array(buffer, 0, 6)
  const columns = new Columns(buffer)
  const withPayloads = (flags & WITH_PAYLOADS) !== 0
  return {
    job,
    count,
    sequences: columns.doubles(count),
    model: columns.ints(count),
    lengths: columns.ints(count),
    idEnds: columns.words(count),
    tokenStarts: columns.words(count),
    payloadEnds: withPayloads ? columns.words(count) : null,
    deadlineMs: (flags & WITH_DEADLINES) !== 0 ? columns.ints(count) : null,
    tokens: columns.ints(tokens),
    ids: columns.bytes(idBytes),
    payloads: withPayloads ? columns.bytes(payloadBytes) : null,
  }
}
