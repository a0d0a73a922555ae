// Why an item waits, in words: GET /v1/items/{id} and `fabric explain`. The facts are the core's.
import type { CoreCounts, Explanation } from '@fabric/core'

const seconds = (ns: number) => `${(Math.max(0, ns) / 1e9).toFixed(1)} s`

/** @param now on the core's clock. */
export function explain(why: Explanation, model: number, now: number): string {
  switch (why.state) {
    case 'leased':
      return why.takenAt === null
        ? `leased to ${why.consumer}, in its channel, not taken yet`
        : `leased to ${why.consumer}, taken ${seconds(now - why.takenAt)} ago`
    case 'retrying':
      return `retry in ${seconds(why.dueAt - now)}`
    case 'held':
      return why.reason === 'paused' ? 'paused' : 'on hold: results unread'
    case 'grouped':
      return grouped(why, model, now)
    default:
      return queued(why, model, now)
  }
}

function grouped(why: Extract<Explanation, { state: 'grouped' }>, model: number, now: number) {
  const { kind, items, deaths, consumers, anotherConsumerUntil } = why
  const what =
    kind === 'half'
      ? `half of a batch that ran out of memory, ${items} items`
      : `suspect group of ${items}, ${deaths.length} consumers died of it`
  if (consumers === 0) return `${what}; no consumer for model ${model}`
  if (anotherConsumerUntil !== null)
    return `${what}; waits for another consumer, for ${seconds(anotherConsumerUntil - now)} at most`
  return kind === 'half'
    ? `${what}; waits for a free place`
    : `${what}; waits for a consumer that holds nothing else`
}

type Queued = Extract<Explanation, { state: 'queued' }>

function queued(why: Queued, model: number, now: number): string {
  if (why.consumers === 0) return `no consumer for model ${model}`
  if (!why.gate.open) return gateInWords(why.gate)
  if (why.tier === 'reclaimed') return 'reclaimed: goes first, as soon as a place is free'
  if (why.neededItems === null)
    return `${why.tier}: over every consumer’s budget, goes alone to the greatest`
  const share = `${why.shapeItems} of ${why.neededItems} for its shape (${why.paddedLength} tokens)`
  if (why.shapeItems >= why.neededItems) return `${why.tier}: ${share}, waits for a free place`
  if (why.isShapeDue)
    return `${why.tier}: ${share}, its shape is due and leaves as soon as a place is free`
  if (why.inCleanup) return `${why.tier}: ${share}, the tail is leaving`
  const aged = [`${why.tier}: ${share}`, ...ageing(why, now)].join(', ')
  return why.inputEnded
    ? `${aged}; input has ended, the tail leaves when the channels are empty`
    : aged
}

/** What lets it go though no full batch comes (S16). */
function ageing({ dueAt, passedOver }: Queued, now: number): string[] {
  if (dueAt !== null) return [`ages in ${seconds(dueAt - now)}`]
  if (passedOver === null) return []
  return [`passed over by ${passedOver.batches} of ${passedOver.limit} batches`]
}

function gateInWords({ progress, thresholdTokens }: CoreCounts['gate']): string {
  return `gate: ${Math.floor(100 * progress)} % of threshold (${thresholdTokens} tokens)`
}
