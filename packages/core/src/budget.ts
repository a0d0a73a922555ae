// What a contract's tokens bound: the padded rule and the actual rule (S17, S18).
//
// Each rule is two limits: one on items x padded length, one on the sum of lengths. A limit that the
// rule does not know is infinite, so no caller asks which rule it is.

import type { BudgetRule, Contract, CoreConfig } from './core-config.js'
import { roundUp } from './length-classes.js'
import { budgetRuleOf } from './options.js'

/** How far items x padded length may pass the tokens where the sum of lengths is what counts (S18). */
const PADDED_SHARE = 1.25

/** Token ids of the largest batch, padding with them. */
export function mostTokens({ tokens, layout }: Contract, rule: BudgetRule): number {
  return rule === 'actual' && layout === 'padded' ? Math.floor(tokens * PADDED_SHARE) : tokens
}

export class Budget {
  /** Most items x padded length. */
  readonly padded: number
  /** Most tokens of the items themselves. */
  readonly actual: number

  constructor(
    private readonly contract: Contract,
    private readonly config: CoreConfig,
  ) {
    const { tokens, layout } = contract
    const rule = budgetRuleOf(config)
    const isActual = rule === 'actual'
    const isPadded = !isActual || layout === 'padded'
    this.padded = isPadded ? mostTokens(contract, rule) : Number.POSITIVE_INFINITY
    this.actual = isActual ? tokens : Number.POSITIVE_INFINITY
  }

  /** Whether `size` items of so many tokens, padded to the longest, stay within both limits. */
  allows(size: number, longest: number, tokens: number): boolean {
    return tokens <= this.actual && size * roundUp(longest, this.contract.roundTo) <= this.padded
  }

  /** Tokens that count for the fill of a batch (S22). */
  tokensOf(size: number, longest: number, tokens: number): number {
    if (this.actual < Number.POSITIVE_INFINITY) return tokens
    return size * roundUp(longest, this.contract.roundTo)
  }

  /** The longest shape of which every item is within both limits, as a key (S5). */
  longestHeldKey(): number {
    const { roundTo } = this.config
    const rounding = Math.max(this.contract.roundTo, roundTo)
    const byActual = Math.floor(this.actual / roundTo)
    const byPadded = (Math.floor(this.padded / rounding) * rounding) / roundTo
    return Math.min(byActual, byPadded)
  }

  /** Most items of a padded length in one batch: the full count; 0 when it holds none. */
  fullCount(paddedLength: number): number {
    const padded = roundUp(paddedLength, this.contract.roundTo)
    const most = Math.min(this.padded / padded, this.actual / paddedLength)
    return Math.min(this.contract.batchSize, Math.floor(most))
  }

  /**
   * Items after which no other of the padded length has room, whatever their own lengths; and tokens
   * after which none has: a lane is ready at either (S13, S18).
   */
  readyCount(paddedLength: number): number {
    const padded = roundUp(paddedLength, this.contract.roundTo)
    return Math.min(this.contract.batchSize, Math.floor(this.padded / padded))
  }

  readyTokens(paddedLength: number): number {
    return this.actual - paddedLength + 1
  }
}
