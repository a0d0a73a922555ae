// What a scenario's consumer registers, its defaults filled in.
import { budgetRuleOf, type Contract, defaultLayout } from '@fabric/core'
import type { Rules } from './scenario/config.js'
import type { ConsumerData } from './scenario/schema.js'

/** What holds where a consumer names none. */
export type UsualContract = Pick<Contract, 'layout' | 'roundTo'>

export function usualContract(rules: Rules): UsualContract {
  return { layout: defaultLayout(budgetRuleOf(rules)), roundTo: rules.roundTo }
}

export function contractFor(data: ConsumerData, usual: UsualContract): Contract {
  const { batchSize, tokens, inputLength, model } = data
  return {
    batchSize,
    tokens,
    inputLength,
    model,
    layout: data.layout ?? usual.layout,
    roundTo: data.roundTo ?? usual.roundTo,
    maxInFlight: data.maxInFlight ?? 1,
  }
}
