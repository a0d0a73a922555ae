// Applies the consumer's input length to a batch (S4): over-long rows are cut, or fail alone. A batch
// that already fits is passed on in place; one that does not is copied, and only then.
import type { BatchView } from '@fabric/protocol'

export interface InputLengthPolicy {
  readonly inputLength: number
  readonly overlength: 'truncate' | 'fail'
  /** A cut row keeps its first tokens and its last, which BERT-like models need (the [SEP]). */
  readonly keepLastToken: boolean
}

/** The rows a handler sees. */
export interface BatchRows {
  readonly size: number
  readonly paddedLength: number
  readonly tokenCount: number
  readonly inputIds: Int32Array
  readonly lengths: Int32Array
  /** Place of each row in the batch as the broker knows it. */
  readonly origin: Uint32Array
  /** Length that a row was cut to, 0 = whole; by row. */
  readonly truncatedTo: Uint32Array
  /** Places whose items are too long and fail. */
  readonly tooLong: readonly number[]
}

export function applyInputLength(view: BatchView, policy: InputLengthPolicy): BatchRows {
  const { lengths, size } = view
  const { inputLength } = policy
  const long: number[] = []
  for (let i = 0; i < size; i++) if (lengths[i] > inputLength) long.push(i)
  // Rounding up may pad past what the engine takes though every row fits.
  const fits = long.length === 0 && view.paddedLength <= inputLength
  if (fits)
    return {
      size,
      paddedLength: view.paddedLength,
      tokenCount: view.tokenCount,
      inputIds: view.inputIds,
      lengths,
      origin: Uint32Array.from({ length: size }, (_, i) => i),
      truncatedTo: new Uint32Array(size),
      tooLong: [],
    }
  return copyRows(view, policy, policy.overlength === 'fail' ? long : [])
}

function copyRows(
  view: BatchView,
  policy: InputLengthPolicy,
  tooLong: readonly number[],
): BatchRows {
  const without = new Set(tooLong)
  const origin = Uint32Array.from({ length: view.size }, (_, i) => i).filter((i) => !without.has(i))
  const lengths = Int32Array.from(origin, (i) => Math.min(view.lengths[i], policy.inputLength))
  const tokenCount = lengths.reduce((sum, n) => sum + n, 0)
  const paddedLength = Math.min(view.paddedLength, policy.inputLength)
  const isPadded = view.layout === 'padded'
  const inputIds = new Int32Array(isPadded ? origin.length * paddedLength : tokenCount)
  const truncatedTo = new Uint32Array(origin.length)
  const starts = view.layout === 'ragged' ? offsetsOf(view.lengths) : null
  let end = 0
  origin.forEach((from, row) => {
    const source = starts === null ? from * view.paddedLength : starts[from]
    const target = isPadded ? row * paddedLength : end
    const kept = lengths[row]
    inputIds.set(view.inputIds.subarray(source, source + kept), target)
    end += kept
    if (kept === view.lengths[from] || isPayload(view, from)) return
    truncatedTo[row] = kept
    if (policy.keepLastToken)
      inputIds[target + kept - 1] = view.inputIds[source + view.lengths[from] - 1]
  })
  return {
    size: origin.length,
    paddedLength,
    tokenCount,
    inputIds,
    lengths,
    origin,
    truncatedTo,
    tooLong,
  }
}

/** Opaque bytes cannot be cut here: the handler sees them whole. */
function isPayload(view: BatchView, index: number): boolean {
  if (view.payloadEnds === null) return false
  return view.payloadEnds[index] > (index === 0 ? 0 : view.payloadEnds[index - 1])
}

/** Where each row of a ragged batch starts, and where the last one ends: size + 1 numbers. */
export function offsetsOf(lengths: Int32Array): Int32Array {
  const offsets = new Int32Array(lengths.length + 1)
  for (let i = 0; i < lengths.length; i++) offsets[i + 1] = offsets[i] + lengths[i]
  return offsets
}
