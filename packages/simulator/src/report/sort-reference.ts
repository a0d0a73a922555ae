// The reference of the design's README: all items sorted longest first and packed under the same
// contract. It cannot stream, and nothing that streams packs much better.
//
// It needs the number of items of each length, not the items: it fits in memory for any set.
import type { Contract } from '@fabric/core'
import { Ratios } from './ratios.js'

export class Lengths {
  readonly #byModel = new Map<number, Map<number, number>>()

  add(model: number, length: number): void {
    let lengths = this.#byModel.get(model)
    if (lengths === undefined) {
      lengths = new Map()
      this.#byModel.set(model, lengths)
    }
    lengths.set(length, (lengths.get(length) ?? 0) + 1)
  }

  models(): readonly number[] {
    return [...this.#byModel.keys()].sort((a, b) => a - b)
  }

  /** Length and how many, longest first. */
  longestFirst(model: number): [number, number][] {
    return [...(this.#byModel.get(model) ?? [])].sort(([a], [b]) => b - a)
  }
}

export interface Packed {
  batches: number
  actualTokens: number
  paddedTokens: number
  readonly fills: Ratios
}

/** Models without a contract are left out: nobody serves them. */
export function sortReference(lengths: Lengths, contracts: ReadonlyMap<number, Contract>): Packed {
  const packed: Packed = { batches: 0, actualTokens: 0, paddedTokens: 0, fills: new Ratios() }
  for (const model of lengths.models()) {
    const contract = contracts.get(model)
    if (contract !== undefined) packModel(packed, contract, lengths.longestFirst(model))
  }
  return packed
}

const roundUp = (length: number, to: number): number => Math.ceil(length / to) * to

function packModel(packed: Packed, contract: Contract, lengths: [number, number][]): void {
  let at = 0
  while (at < lengths.length) {
    const padded = roundUp(lengths[at][0], contract.roundTo)
    const size = Math.max(1, Math.min(contract.batchSize, Math.floor(contract.tokens / padded)))
    const { taken, actual, next } = take(lengths, at, size)
    packed.batches++
    packed.actualTokens += actual
    packed.paddedTokens += taken * padded
    packed.fills.add((taken * padded) / contract.tokens)
    at = next
  }
}

/** Takes the longest `size` items that are left, or what there is. */
function take(lengths: [number, number][], from: number, size: number) {
  let taken = 0
  let actual = 0
  let at = from
  while (at < lengths.length && taken < size) {
    const count = Math.min(lengths[at][1], size - taken)
    taken += count
    actual += count * lengths[at][0]
    lengths[at][1] -= count
    if (lengths[at][1] === 0) at++
  }
  return { taken, actual, next: at }
}
