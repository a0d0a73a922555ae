// Borrowed columns made into one buffer that can be handed to another thread.
import type { SubmitBlock } from '@fabric/core'
import type { ItemColumns } from './item-block.js'
import type { SettleWrite } from './messages.js'
import { recordBytes, writeRecord } from './result-chunk.js'
import type { SettledItem } from './store.js'

type Column = Int32Array | Uint32Array | Float64Array | Uint8Array

const align8 = (bytes: number) => Math.ceil(bytes / 8) * 8

class Packed {
  #at = 0
  readonly buffer: ArrayBuffer

  constructor(columns: readonly (Column | null)[]) {
    let bytes = 0
    for (const column of columns) bytes += align8(column?.byteLength ?? 0)
    this.buffer = new ArrayBuffer(bytes)
  }

  copy<T extends Column>(column: T): T {
    // A Buffer is a Uint8Array with a constructor of its own.
    const Constructor = column instanceof Uint8Array ? Uint8Array : column.constructor
    const View = Constructor as new (buffer: ArrayBuffer, at: number, length: number) => T
    const copy = new View(this.buffer, this.#at, column.length)
    copy.set(column as never)
    this.#at += align8(column.byteLength)
    return copy
  }
}

/** Where each item's tokens begin: an item with a payload has none. */
function tokenStartsOf({ count, lengths, payloadEnds }: SubmitBlock): Uint32Array {
  const starts = new Uint32Array(count)
  let at = 0
  for (let i = 0; i < count; i++) {
    starts[i] = at
    const hasPayload = payloadEnds !== null && payloadEnds[i] > (i === 0 ? 0 : payloadEnds[i - 1])
    if (!hasPayload) at += lengths[i]
  }
  return starts
}

export function packItems(
  block: SubmitBlock,
  sequences: Float64Array,
): { items: ItemColumns; buffer: ArrayBuffer } {
  const { model, lengths, tokens, ids, idEnds, payloads, payloadEnds, deadlineMs = null } = block
  const starts = tokenStartsOf(block)
  const packed = new Packed([
    sequences,
    model,
    lengths,
    tokens,
    ids,
    idEnds,
    payloads,
    payloadEnds,
    deadlineMs,
    starts,
  ])
  const items: ItemColumns = {
    job: block.job,
    count: block.count,
    sequences: packed.copy(sequences),
    model: packed.copy(model),
    lengths: packed.copy(lengths),
    tokens: packed.copy(tokens),
    ids: packed.copy(ids),
    idEnds: packed.copy(idEnds),
    payloads: payloads === null ? null : packed.copy(payloads),
    payloadEnds: payloadEnds === null ? null : packed.copy(payloadEnds),
    deadlineMs: deadlineMs === null ? null : packed.copy(deadlineMs),
    tokenStarts: packed.copy(starts),
  }
  return { items, buffer: packed.buffer }
}

export function packSettled(items: readonly SettledItem[]): {
  write: SettleWrite
  buffer: ArrayBuffer
} {
  const count = items.length
  let bytes = 0
  for (const { record } of items) bytes += recordBytes(record)
  const buffer = new ArrayBuffer(5 * 8 * count + bytes)
  const column = (index: number) => new Float64Array(buffer, 8 * count * index, count)
  const write: SettleWrite = {
    kind: 'settle',
    jobs: column(0),
    sequences: column(1),
    models: column(2),
    paddedLengths: column(3),
    recordEnds: column(4),
    records: new Uint8Array(buffer, 5 * 8 * count, bytes),
  }
  let at = 0
  items.forEach(({ job, sequence, shape, record }, i) => {
    write.jobs[i] = job
    write.sequences[i] = sequence
    write.models[i] = shape?.model ?? -1
    write.paddedLengths[i] = shape?.paddedLength ?? 0
    writeRecord(write.records, at, record)
    at += recordBytes(record)
    write.recordEnds[i] = at
  })
  return { write, buffer }
}
