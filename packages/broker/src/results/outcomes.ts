// What the core is told of how items ended. The message has one outcome for whatever comes back
// untouched, and an error beside it that says why; for the core that is an outcome of its own (S28).

import { RESULT_OUT_OF_MEMORY } from '@fabric/core'
import { Encoding, Outcome, type ResultsMessage } from '@fabric/protocol'
import { errorFrom } from './render.js'

export function coreOutcomes(message: ResultsMessage): Uint8Array {
  const { count, outcome, encoding } = message
  let changed: Uint8Array | null = null
  for (let entry = 0; entry < count; entry++) {
    if (outcome[entry] !== Outcome.nack || encoding[entry] !== Encoding.error) continue
    if (errorFrom(message.value(entry))?.code !== 'FABRIC_OUT_OF_MEMORY') continue
    changed ??= outcome.slice()
    changed[entry] = RESULT_OUT_OF_MEMORY
  }
  return changed ?? outcome
}
