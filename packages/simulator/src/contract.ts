// What a scenario's consumer registers, its defaults filled in.
import type { Contract } from '@fabric/core'
import type { ConsumerData } from './scenario/schema.js'

export function contractFor(data: ConsumerData, roundTo: number): Contract {
  const { batchSize, tokens, inputLength, model } = data
  return {
    batchSize,
    tokens,
    inputLength,
    model,
    layout: data.layout ?? 'padded',
    roundTo: data.roundTo ?? roundTo,
    maxInFlight: data.maxInFlight ?? 1,
  }
}
