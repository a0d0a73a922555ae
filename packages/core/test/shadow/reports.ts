// What consumers do with batches: they take them, report on them, run out of memory, die of them.

import {
  type CoreEvent,
  RESULT_COMPLETED,
  RESULT_FAILED,
  RESULT_OUT_OF_MEMORY,
} from '../../src/events.js'
import { check, roundUp } from './checks.js'
import { type ShadowBatch, type ShadowConsumer, type ShadowItem, suspicion } from './items.js'
import type { ShadowState } from './state.js'

export class Reports {
  constructor(private readonly state: ShadowState) {}

  /** False where it may take no more: it is dead then, and has not taken the batch (I6). */
  take(consumer: ShadowConsumer, number: number): boolean {
    const at = consumer.channel.findIndex((batch) => batch.number === number)
    if (at < 0) return true
    if (consumer.inFlight.length >= consumer.contract.maxInFlight) return false
    const [batch] = consumer.channel.splice(at, 1)
    batch.taken = true
    consumer.couldTakeSince = -1
    consumer.inFlight.push(batch)
    return true
  }

  report(
    consumer: ShadowConsumer,
    event: Extract<CoreEvent, { type: 'results' }>,
    now: number,
  ): void {
    const batch = this.state.batches.get(event.batch)
    if (batch === undefined || batch.consumer !== consumer.id) return
    if (!this.take(consumer, event.batch)) return
    this.reportTooMuch(consumer, batch, event)
    event.index.forEach((index, i) => {
      if (index >= batch.items.length || batch.reported.has(index)) return
      batch.reported.add(index)
      const item = batch.items[index]
      const outcome = event.outcome[i]
      const ends = outcome === RESULT_COMPLETED || outcome === RESULT_FAILED
      if (item.state !== 'leased' || item.batch !== batch.number) return
      item.suspicion = null
      if (ends) return
      if (outcome === RESULT_OUT_OF_MEMORY && batch.items.length > 1) {
        item.state = 'grouped'
        item.suspicion = suspicion('half', batch)
        return
      }
      item.state = 'retrying'
      item.dueAt =
        now + Math.min(this.state.config.retryDelayMs * 2 ** item.returns++, 30_000) * 1e6
    })
  }

  /** S28: the consumer's budget is half of what the batch was packed by, or its longest item. */
  private reportTooMuch(
    consumer: ShadowConsumer,
    batch: ShadowBatch,
    event: Extract<CoreEvent, { type: 'results' }>,
  ): void {
    const tooMuch = [...event.index].filter(
      (index, i) =>
        event.outcome[i] === RESULT_OUT_OF_MEMORY &&
        index < batch.items.length &&
        !batch.reported.has(index) &&
        batch.items[index].state === 'leased' &&
        batch.items[index].batch === batch.number,
    )
    if (tooMuch.length === 0 || batch.items.length === 1 || consumer.draining) return
    const longest = Math.max(...tooMuch.map((index) => batch.items[index].length))
    const rounding = Math.max(consumer.contract.roundTo, this.state.config.roundTo)
    const least = Math.min(roundUp(longest, rounding), batch.tokens)
    consumer.reducedLeft = 100
    consumer.tokens = Math.min(consumer.tokens, Math.max(Math.floor(batch.tokens / 2), least))
  }

  /** S27: all that the consumer had taken, and the head of its channel, is under suspicion. */
  blame(consumer: ShadowConsumer, now: number, lives = false): void {
    const head = lives ? [] : consumer.channel.slice(0, 1)
    for (const batch of [...consumer.inFlight, ...head]) {
      for (const [index, item] of batch.items.entries()) {
        const open = item.state === 'leased' && item.batch === batch.number
        if (open && !batch.reported.has(index)) this.suspect(item, batch, consumer, now)
      }
    }
  }

  private suspect(
    item: ShadowItem,
    batch: ShadowBatch,
    consumer: ShadowConsumer,
    now: number,
  ): void {
    const known = batch.suspect ? item.suspicion : null
    const next = known ?? suspicion('suspect', batch)
    item.suspicion = next
    next.deaths++
    if (batch.suspect && batch.items.length === 1) next.deathsAlone++
    next.batch = batch.number
    next.lastConsumer = consumer.name
    next.lastDeathAt = now
    const most =
      Math.ceil(Math.log2(next.firstSize)) + Math.max(2, this.state.config.poisonDeaths) + 1
    check(next.deaths <= most, `S27: ${item.id} has died with ${next.deaths} consumers`)
  }
}
