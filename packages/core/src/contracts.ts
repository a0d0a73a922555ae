// Contracts: what a consumer registers, and how many items of a padded length it takes (S5, S14).
//
// Consumers with equal contracts form a class. Readiness is kept per class, never per consumer, so a
// thousand equal GPUs cost an arrival no more than one.

import { Heap } from './heap.js'
import type { Model } from './models.js'
import { OrderedSet } from './ordered-set.js'
import type { Contract, CoreConfig } from './types.js'

/** More would make each arrival pay for each of them (S14). */
export const CONTRACT_CLASSES_MAX = 64

export interface Refusal {
  readonly code: string
  readonly message: string
  readonly field: string
}

const RANGES: readonly (readonly [keyof Contract, number, number])[] = [
  ['batchSize', 1, 2 ** 20],
  ['tokens', 1, 2 ** 31 - 1],
  ['inputLength', 1, 2 ** 31 - 1],
  ['model', 0, 2 ** 31 - 1],
  ['roundTo', 1, 64],
  ['maxInFlight', 1, 64],
]

/** The first thing wrong with a contract, or null. */
export function refuseContract(contract: Contract): Refusal | null {
  const refuse = (field: string, message: string): Refusal => ({
    code: 'FABRIC_CONTRACT_INVALID',
    message: `${field} ${message}`,
    field,
  })
  for (const [field, min, max] of RANGES) {
    const value = contract[field] as unknown
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
      return refuse(field, `must be an integer from ${min} to ${max}, got ${String(value)}`)
    }
  }
  if ((contract.roundTo & (contract.roundTo - 1)) !== 0) {
    return refuse('roundTo', `must be a power of two, got ${contract.roundTo}`)
  }
  if (contract.layout !== 'padded' && contract.layout !== 'ragged') {
    return refuse('layout', `must be padded or ragged, got ${String(contract.layout)}`)
  }
  return null
}

/** `length` rounded up to a multiple. Not bit arithmetic: lengths go up to 2^31 - 1 (S17). */
export function roundUp(length: number, multiple: number): number {
  return Math.ceil(length / multiple) * multiple
}

export function sameClass(a: Contract, b: Contract): boolean {
  return (
    a.batchSize === b.batchSize &&
    a.tokens === b.tokens &&
    a.inputLength === b.inputLength &&
    a.layout === b.layout &&
    a.roundTo === b.roundTo &&
    a.maxInFlight === b.maxInFlight
  )
}

/** The consumers of a model whose contracts are equal, and what is ready for them. */
export class ContractClass {
  members = 0
  /** Keys of the lanes that are ready for this class (S13). */
  readonly ready = new OrderedSet()
  /** Full batches that stand in lanes: the sum of floor(count / ready size) (S11). */
  fullBatches = 0
  /** The same of the disk tier, whether in the window yet or not. */
  readonly readyOnDisk = new OrderedSet()
  fullBatchesOnDisk = 0
  /** Members with a free place, by batches held, then longest wait (S11). */
  readonly free = new Heap()
  /** Those of them with an empty channel: the only ones served in a tail (S11). */
  readonly freeAndEmpty = new Heap()
  /** The longest shape of which it holds an item, as a key (S5). */
  readonly longestHeldKey: number
  /** The shape of the longest input that its runtime takes, as a key (S4). */
  readonly inputKey: number
  /** Place in the list of classes with a free member, or -1. */
  listed = -1

  constructor(
    readonly model: Model,
    readonly contract: Contract,
    private readonly config: CoreConfig,
  ) {
    // A shape is held when its padded length, rounded again as this class rounds, is in the budget.
    const rounding = Math.max(contract.roundTo, config.roundTo)
    const longestHeld = Math.floor(contract.tokens / rounding) * rounding
    this.longestHeldKey = longestHeld / config.roundTo
    this.inputKey = Math.ceil(contract.inputLength / config.roundTo)
  }

  holds(key: number): boolean {
    return key <= this.longestHeldKey
  }

  /** Most items of a shape in one batch; 0 when it holds none (S5). */
  fullCount(key: number): number {
    const padded = roundUp(key * this.config.roundTo, this.contract.roundTo)
    return Math.min(this.contract.batchSize, Math.floor(this.contract.tokens / padded))
  }

  /** Items at which a lane of this shape is ready (S13); 0 when it never is. */
  readySize(key: number): number {
    if (!this.holds(key)) return 0
    return this.config.readyRule === 'full-batch' ? this.fullCount(key) : this.contract.batchSize
  }
}
