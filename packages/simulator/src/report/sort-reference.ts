// The reference of the design's README: all items sorted longest first and packed under the same
// contract. It cannot stream, and nothing that streams packs much better.
//
// It needs the number of items of each length, not the items: it fits in memory for any set.
import { Budget, type Contract } from '@fabric/core'
import type { Rules } from '../scenario/config.js'
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
export function sortReference(
  lengths: Lengths,
  contracts: ReadonlyMap<number, Contract>,
  rules: Rules,
): Packed {
  const packed: Packed = { batches: 0, actualTokens: 0, paddedTokens: 0, fills: new Ratios() }
  for (const model of lengths.models()) {
    const contract = contracts.get(model)
    if (contract === undefined) continue
    const budget = new Budget(contract, { ...rules, brokerLife: 0n })
    packModel(packed, contract, budget, lengths.longestFirst(model))
  }
  return packed
}

const roundUp = (length: number, to: number): number => Math.ceil(length / to) * to

function packModel(
  packed: Packed,
  contract: Contract,
  budget: Budget,
  lengths: [number, number][],
): void {
  const { roundTo, batchSize, tokens, layout } = contract
  let at = 0
  while (at < lengths.length) {
    const longest = lengths[at][0]
    const padded = roundUp(longest, roundTo)
    const most = Math.max(1, Math.min(batchSize, Math.floor(budget.padded / padded)))
    const { size, actual, next } = take(lengths, at, most, budget.actual)
    packed.batches++
    packed.actualTokens += actual
    packed.paddedTokens += layout === 'ragged' ? actual : size * padded
    packed.fills.add(budget.tokensOf(size, longest, actual) / tokens)
    at = next
  }
}

/** Takes the longest `most` items that are left, as far as their tokens allow, but one at least. */
function take(lengths: [number, number][], from: number, most: number, tokensMost: number) {
  let size = 0
  let actual = 0
  let at = from
  while (at < lengths.length && size < most) {
    const [length, left] = lengths[at]
    const room = Math.floor((tokensMost - actual) / length)
    const count =
      size === 0 ? Math.max(1, Math.min(left, most, room)) : Math.min(left, most - size, room)
    size += count
    actual += count * length
    lengths[at][1] -= count
    if (lengths[at][1] > 0) break
    at++
  }
  return { size, actual, next: at }
}
