// Contracts: what a consumer registers, and how many items of a padded length it takes (S5, S14).
//
// Consumers with equal contracts form a class. Readiness is kept per class, never per consumer, so a
// thousand equal GPUs cost an arrival no more than one.

import { Budget } from './budget.js'
import type { Contract, CoreConfig } from './core-config.js'
import { Heap } from './heap.js'
import type { Model } from './models.js'
import { budgetRuleOf } from './options.js'
import { OrderedSet } from './ordered-set.js'
import { ReadyAt } from './ready-at.js'
import { Spans } from './spans.js'

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
  /** Full batches that stand in lanes (S11). */
  fullBatches = 0
  /** The same of the disk tier, whether in the window yet or not. */
  readonly readyOnDisk = new OrderedSet()
  fullBatchesOnDisk = 0
  /** Rows of shapes that are due for it, by due time (S16). */
  readonly due = new Heap()
  /** Full batches over several shapes, or null when off (S13a). */
  readonly spans: Spans | null
  /** Members with a free place, by batches held, then longest wait (S11). */
  readonly free = new Heap()
  /** Those of them with an empty channel: the only ones served in a tail (S11). */
  readonly freeAndEmpty = new Heap()
  /** The longest shape of which it holds an item, as a key (S5). */
  readonly longestHeldKey: number
  /** The shape of the longest input that its runtime takes, as a key (S4). */
  readonly inputKey: number
  readonly budget: Budget
  private readonly byCount = new Map<number, ReadyAt>()
  /** Place in the list of classes with a free member, or -1. */
  listed = -1

  constructor(
    readonly model: Model,
    readonly contract: Contract,
    private readonly config: CoreConfig,
  ) {
    this.budget = new Budget(contract, config)
    this.longestHeldKey = this.budget.longestHeldKey()
    this.inputKey = Math.ceil(contract.inputLength / config.roundTo)
    const { spanWaste, readyRule, activationThreshold } = config
    // `[0]` = off, also where the queue is at its limit (S13b); a lane that waits for batchSize items
    // is not completed by others, and the actual rule knows no full count.
    const hasFullCount = readyRule === 'full-batch' && budgetRuleOf(config) === 'padded'
    const on = hasFullCount && spanWaste.some((waste) => waste > 0)
    const { roundTo } = config
    this.spans = on ? new Spans(this, spanWaste, roundTo, activationThreshold !== null) : null
  }

  holds(key: number): boolean {
    return key <= this.longestHeldKey
  }

  /** Most items of a shape in one batch; 0 when it holds none (S5). */
  fullCount(key: number): number {
    return this.budget.fullCount(key * this.config.roundTo)
  }

  /**
   * Full batches that wait, as far as is known without packing them (S11): those that stand in lanes,
   * or, where shapes complete each other, at least as many as the padded tokens fill.
   */
  fullBatchesLeft(): number {
    const alone = this.fullBatches + this.fullBatchesOnDisk
    if (this.spans === null) return alone
    return Math.max(alone, Math.floor(this.model.queuePaddedTokens / this.contract.tokens))
  }

  /** What a batch takes of this shape where there is more: it holds the shape. */
  fullAt(key: number): ReadyAt {
    const paddedLength = key * this.config.roundTo
    return this.readyAtOf(
      this.budget.readyCount(paddedLength),
      this.budget.readyTokens(paddedLength),
    )
  }

  /** What a lane of this shape must hold to be ready (S13, S18); null when it never is. */
  readyAt(key: number): ReadyAt | null {
    if (!this.holds(key)) return null
    if (this.config.readyRule === 'batch-size')
      return this.readyAtOf(this.contract.batchSize, Number.POSITIVE_INFINITY)
    return this.fullAt(key)
  }

  /** Shapes that are ready at the same count share one: an arrival finds it in the cache. */
  private readyAtOf(count: number, tokens: number): ReadyAt {
    if (tokens < Number.POSITIVE_INFINITY) return new ReadyAt(count, tokens)
    let known = this.byCount.get(count)
    if (known === undefined) {
      known = new ReadyAt(count, tokens)
      this.byCount.set(count, known)
    }
    return known
  }
}
