// Judges each batch as it is dispatched: its limits, its suspects, its span, and who was passed over.

import type { DispatchEffect } from '../../src/effects.js'
import { check, roundUp, sum } from './checks.js'
import type { ShadowBatch, ShadowConsumer, ShadowItem } from './items.js'
import { type Readiness, spanOf } from './readiness.js'
import type { ShadowState } from './state.js'

export class BatchJudge {
  constructor(
    private readonly state: ShadowState,
    private readonly readiness: Readiness,
  ) {}

  checkLimits(
    effect: DispatchEffect,
    consumer: ShadowConsumer,
    items: readonly ShadowItem[],
  ): void {
    const { batchSize, roundTo, layout } = consumer.contract
    const { tokens } = consumer
    const isActual = this.state.config.budgetRule === 'actual'
    const longest = Math.max(...items.map((item) => item.length))
    const padded = Math.ceil(longest / roundTo) * roundTo
    check(effect.paddedLength === padded, `S17: padded ${effect.paddedLength}, not ${padded}`)
    const actual = sum(items.map((item) => item.length))
    check(effect.actualTokens === actual, 'S22: actual tokens')
    check(effect.budgetTokens === (isActual ? actual : padded * items.length), 'S22: budget tokens')
    check(effect.fill === effect.budgetTokens / consumer.contract.tokens, 'S22: fill')
    check(effect.size === items.length && items.length > 0, 'a batch without items')
    if (effect.closedBy === 'alone') {
      check(items.length === 1, 'S5: alone, but not one')
      for (const other of this.state.membersOf(consumer.contract.model)) {
        check(!this.readiness.holds(other, items[0]), 'S5: alone, but another consumer holds it')
        check(other.tokens <= tokens, 'S5: alone, but not to the greatest budget')
      }
      return
    }
    check(items.length <= batchSize, 'I2: over batchSize')
    const mostPadded = this.readiness.mostPadded(consumer)
    check(padded * items.length <= mostPadded, 'I2: over tokens')
    if (isActual) check(actual <= tokens, 'I2: over tokens, actual')
    // Rounding finer than the shapes leaves room that no item of the shape fills, and so does a
    // class of several padded lengths.
    const shape = this.state.queues.paddedLength(longest)
    const whole =
      roundTo >= this.state.config.roundTo && shape - longest < this.state.config.roundTo
    const isOver = !this.readiness.holds(consumer, items[0])
    const partial =
      effect.cleanup || effect.sources.reclaimed > 0 || effect.group !== null || isOver
    const isDue = effect.source === 'due'
    const isPartial = partial || (isDue && !effect.normal)
    if (effect.closedBy === 'lane_empty') check(isPartial || !whole, 'S21: a normal batch not full')
    check(effect.normal === !isPartial, 'a batch that is neither normal nor part of a tail')
    const overActual = isActual && actual + padded > tokens
    const oneMore = padded * (items.length + 1) > mostPadded || overActual
    if (layout === 'ragged' && isActual) check(mostPadded === Infinity, 'S18: ragged is not padded')
    if (oneMore) check(effect.closedBy === 'token_limit', `S21: ${effect.closedBy}`)
  }

  checkSuspects(
    consumer: ShadowConsumer,
    items: readonly ShadowItem[],
    held: readonly ShadowBatch[],
    now: number,
  ): void {
    check(held.length === 0, 'S27: suspects beside other work')
    const { deaths, firstSize } = items[0].suspicion!
    const splits = deaths - this.state.config.poisonDeaths + 1
    const most = Math.ceil(firstSize / 2 ** Math.max(0, splits))
    check(items.length <= most, `S27: ${items.length} of ${firstSize} after ${deaths} deaths`)
    check(
      items.length > 1 || this.readiness.mayHave(consumer, items[0], now),
      'S27: the same consumer again',
    )
  }

  /** S13a, S13b: a span pads no more than the consumer's need allows, or it is the least padded. */
  checkSpan(effect: DispatchEffect, consumer: ShadowConsumer, items: readonly ShadowItem[]): void {
    const { roundTo, batchSize } = consumer.contract
    // A due batch of a full shape is normal and takes fillers, which no span allows (S16).
    if (
      !effect.normal ||
      effect.source === 'due' ||
      effect.sources.disk > 0 ||
      !this.readiness.hasSpans()
    )
      return
    const lengths = items.map((item) => this.state.queues.paddedLength(item.length))
    const longest = Math.max(...lengths)
    if (lengths.every((length) => length === longest)) return
    // Items that end below the edge of their class leave room for more than the span's full count.
    const count = Math.min(batchSize, Math.floor(consumer.tokens / roundUp(longest, roundTo)))
    check(lengths.length >= count, 'S13a: a span of less than a full count')
    const span = lengths.sort((a, b) => b - a).slice(0, count)
    const waste = 1 - sum(span) / (longest * count)
    const waiting = [...this.state.unsettled].filter(
      (item) => item.model === consumer.contract.model && !this.state.onHold.has(item.job),
    )
    if (!this.readiness.inputLengthsDiffer(consumer.contract.model)) {
      check(
        this.readiness.fullBatches(consumer, waiting) === 0,
        'S13b: a span before a lane that is full',
      )
    }
    if (waste <= this.readiness.mostWaste(consumer) + 1e-9) return
    // At the limit, and in no other case: as for the most need, and beyond that the least padded there is.
    check(this.readiness.isAtLimit(), `S13b: a span that pads ${waste}`)
    if (waste <= this.state.config.spanWaste.at(-1)! + 1e-9) return
    const least = spanOf(consumer, this.state.queues, waiting).waste
    check(waste <= least + 1e-9, `S13b: a span that pads ${waste}, though one pads ${least}`)
  }

  /** S12, S16: due work leaves before lanes and disk, what was due first before what was due later. */
  checkDue(
    effect: DispatchEffect,
    consumer: ShadowConsumer,
    items: readonly ShadowItem[],
    now: number,
  ): void {
    const { model } = consumer.contract
    const first = Math.min(...items.map((item) => this.state.due.at(item)))
    const isSure = this.state.config.starveBatches === 0 && this.state.config.mode === 'memory'
    if (effect.source === 'due' && isSure) check(first <= now, 'S16: nothing in a due batch is due')
    // Over-budget items and due ones take turns (S5).
    const isAlone = !this.readiness.holds(consumer, items[0])
    const isAhead = effect.group !== null || effect.source === 'reclaimed' || isAlone
    if (isAhead || this.readiness.inputLengthsDiffer(model)) return
    const waiting = [...this.state.unsettled].filter(
      (item) => item.model === model && item.state === 'queued' && !this.state.onHold.has(item.job),
    )
    const left = waiting.filter(
      (item) => this.readiness.holds(consumer, item) && !items.includes(item),
    )
    if (effect.source !== 'due') this.checkPassedOver(left, items)
    // In disk mode an older shape may be on its way from disk, or have been older than it turned out.
    if (effect.source === 'due' && !isSure) return
    const bound = effect.source === 'due' ? first : Number.POSITIVE_INFINITY
    for (const item of left) {
      const at = this.state.due.at(item)
      if (at > this.state.tickedAt || at >= bound) continue
      const like = waiting.filter((one) => this.standsWith(one, item))
      const isOwn = this.state.due.hasOwn(item)
      // What is full anyway keeps its turn (S13), unless the item has a wait of its own.
      check(
        !isOwn && this.readiness.fullBatches(consumer, like) > 0,
        `S16: ${item.id} is due and was passed over`,
      )
    }
  }

  /** I7: a shape whose items have no wait is due when it was passed over for long. */
  private checkPassedOver(left: readonly ShadowItem[], taken: readonly ShadowItem[]): void {
    const withoutWait = left.filter((item) => this.state.due.at(item) === Number.POSITIVE_INFINITY)
    const found = this.state.passedOver.find(withoutWait, taken)
    check(found === null, `I7: ${found?.id} was passed over for too many batches`)
  }

  private standsWith(one: ShadowItem, item: ShadowItem): boolean {
    const shapes = [one, item].map(({ length }) => this.state.queues.paddedLength(length))
    return shapes[0] === shapes[1]
  }
}
