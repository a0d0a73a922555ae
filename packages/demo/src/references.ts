// What the demo's figures are held against: the same items under the same contract, packed by the two
// rules a reader knows. `sort` cannot stream, first-come is what a plain batcher does.

export interface Packing {
  readonly batches: number
  /** 1 - actual tokens / padded tokens, over all batches. */
  readonly waste: number
}

const padded = (length: number, roundTo: number) => Math.ceil(length / roundTo) * roundTo

/** Takes items in the order given until the next would pass the budget or the item limit. */
export function packInOrder(
  lengths: readonly number[],
  contract: { readonly batchSize: number; readonly tokens: number; readonly roundTo: number },
): Packing {
  let [batches, actual, budget] = [0, 0, 0]
  let [size, longest] = [0, 0]
  const close = () => {
    if (size === 0) return
    batches += 1
    budget += size * longest
    size = 0
    longest = 0
  }
  for (const length of lengths) {
    const next = Math.max(longest, padded(length, contract.roundTo))
    if (size === contract.batchSize || (size + 1) * next > contract.tokens) close()
    size += 1
    longest = Math.max(longest, padded(length, contract.roundTo))
    actual += length
  }
  close()
  return { batches, waste: budget === 0 ? 0 : 1 - actual / budget }
}

export const packFirstCome = packInOrder

export const packSorted: typeof packInOrder = (lengths, contract) =>
  packInOrder(
    [...lengths].sort((a, b) => b - a),
    contract,
  )
