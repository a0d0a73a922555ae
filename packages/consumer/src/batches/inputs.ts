// The items of a batch once more, beside their results: a broker that was started anew knows the items,
// not the batch (S26).
import type { BatchView, ItemInputs } from '@fabric/protocol'

/** Copies of the items at these places of the batch, whose views must not have ended. */
export function inputsOf(view: BatchView, places: readonly number[]): ItemInputs {
  const starts = rowStarts(view)
  const none = new Uint8Array(0)
  const rows = places.map((place) => {
    const payload = view.payloads === null ? none : slice(view.payloads, view.payloadEnds!, place)
    const start = starts(place)
    const end = payload.byteLength > 0 ? start : start + view.lengths[place]
    return {
      length: view.lengths[place],
      id: slice(view.ids, view.idEnds, place),
      payload,
      tokens: view.inputIds.subarray(start, end),
    }
  })
  return {
    model: view.model,
    lengths: Int32Array.from(rows, ({ length }) => length),
    idEnds: endsOf(rows.map(({ id }) => id)),
    payloadEnds: endsOf(rows.map(({ payload }) => payload)),
    tokens: joined(
      rows.map(({ tokens }) => tokens),
      (count) => new Int32Array(count),
    ),
    payloads: joined(
      rows.map(({ payload }) => payload),
      (bytes) => new Uint8Array(bytes),
    ),
    ids: joined(
      rows.map(({ id }) => id),
      (bytes) => new Uint8Array(bytes),
    ),
  }
}

/** Where each row of a batch starts. Padded rows have equal distances; a ragged one follows the last. */
function rowStarts({ layout, paddedLength, lengths }: BatchView): (place: number) => number {
  if (layout === 'padded') return (place) => place * paddedLength
  const starts = new Int32Array(lengths.length)
  for (let i = 1; i < lengths.length; i++) starts[i] = starts[i - 1] + lengths[i - 1]
  return (place) => starts[place]
}

const slice = (bytes: Uint8Array, ends: Uint32Array, i: number): Uint8Array =>
  bytes.subarray(i === 0 ? 0 : ends[i - 1], ends[i])

function endsOf(parts: readonly Uint8Array[]): Uint32Array {
  let end = 0
  return Uint32Array.from(parts, ({ byteLength }) => {
    end += byteLength
    return end
  })
}

function joined<T extends Uint8Array | Int32Array>(
  parts: readonly T[],
  make: (length: number) => T,
): T {
  const all = make(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
