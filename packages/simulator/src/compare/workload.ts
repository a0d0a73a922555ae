// The part of a scenario that every rule can be given: arrivals, consumers, the end of input.
import type { Scenario } from '../scenario/read.js'
import type { EventData } from '../scenario/schema.js'

const KEPT = ['submit', 'submitMany', 'trace', 'flush', 'register', 'createJob'] as const

export function withoutTrouble(full: Scenario): {
  readonly scenario: Scenario
  readonly leftOut: readonly string[]
} {
  const leftOut = new Set<string>()
  const events = full.events.flatMap((event, i): EventData[] => {
    if (KEPT.some((key) => event[key] !== undefined)) return [plain(event, leftOut)]
    const actions = Object.keys(event).filter((key) => key !== 'atUs')
    for (const action of actions) leftOut.add(`events[${i}].${action}`)
    return []
  })
  const consumers = full.consumers.map((consumer) => {
    if (consumer.script.length > 0) leftOut.add(`the script of ${consumer.name}`)
    return { ...consumer, script: [] }
  })
  return { scenario: { ...full, consumers, events }, leftOut: [...leftOut] }
}

/** Neither poison nor deadlines. */
function plain(event: EventData, leftOut: Set<string>): EventData {
  const { submit, submitMany, deadlineMs, ...rest } = event
  const items = submit ?? []
  if (items.some(({ poison }) => poison === true)) leftOut.add('poison')
  const hasDeadline = [event, submitMany, ...items].some((one) => one?.deadlineMs !== undefined)
  if (hasDeadline) leftOut.add('deadlineMs')
  return {
    ...rest,
    ...(submit === undefined
      ? {}
      : { submit: items.map(({ poison: _, deadlineMs: __, ...item }) => item) }),
    ...(submitMany === undefined ? {} : { submitMany: { ...submitMany, deadlineMs: undefined } }),
  }
}
