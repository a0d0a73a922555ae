// The shadow's opinion of what is ready for a consumer (S5, S13, S13a, S13b, S17, S18, S27), by counting.

import { roundUp, sum } from './checks.js'
import type { ShadowConsumer, ShadowItem } from './items.js'
import type { ShadowQueues } from './queues.js'
import type { ShadowState } from './state.js'

export class Readiness {
  constructor(private readonly state: ShadowState) {}

  /** The most of items x padded length in a batch (S17, S18). */
  mostPadded({ contract, tokens }: ShadowConsumer): number {
    if (this.state.config.budgetRule === 'padded') return tokens
    return contract.layout === 'padded' ? Math.floor(tokens * 1.25) : Infinity
  }

  /** Whether every item of the item's shape is within the budget (S5). */
  holds(member: ShadowConsumer, item: ShadowItem): boolean {
    const { tokens } = member
    const { roundTo } = member.contract
    const shape = this.state.queues.paddedLength(item.length)
    const padded = Math.ceil(shape / roundTo) * roundTo
    const withinActual = this.state.config.budgetRule === 'padded' || shape <= tokens
    return withinActual && padded <= this.mostPadded(member)
  }

  hasSpans(): boolean {
    const { readyRule, budgetRule, spanWaste } = this.state.config
    return readyRule === 'full-batch' && budgetRule === 'padded' && spanWaste.some((one) => one > 0)
  }

  mostWaste({ channel, inFlight, contract }: ShadowConsumer): number {
    const { spanWaste } = this.state.config
    const need = channel.length > 0 ? 0 : inFlight.length > 0 ? 1 : 2
    if (need < 2 && !this.isInputOpen(contract.model)) return -1
    return this.hasSpans() ? spanWaste[Math.min(need, spanWaste.length - 1)] : -1
  }

  /** The queue is at its limit: what was refused last does not fit. */
  isAtLimit(): boolean {
    if (this.state.refusedLength === 0) return false
    const { reserved } = this.state.counts()
    const waiting = [...this.state.unsettled].filter((item) => item.state !== 'leased')
    const tokens =
      sum(waiting.map((item) => item.length)) + reserved.tokens + this.state.refusedLength
    const { maxQueuedItems, maxQueuedTokens } = this.state.config
    return waiting.length + reserved.items >= maxQueuedItems || tokens > maxQueuedTokens
  }

  isInputOpen(model: number): boolean {
    for (const { model: its, state, job } of this.state.unsettled) {
      if (its === model && state !== 'leased' && this.state.flushed.get(job) === false) return true
    }
    return false
  }

  inputLengthsDiffer(model: number): boolean {
    return new Set(this.state.membersOf(model).map((one) => one.contract.inputLength)).size > 1
  }

  /** Batches that the queued padded tokens fill, where shapes complete each other (S11). */
  paddedBatches(member: ShadowConsumer, waiting: readonly ShadowItem[]): number {
    if (!this.hasSpans()) return 0
    const queued = waiting.filter((item) => item.state === 'queued' && !item.durable)
    const padded = sum(queued.map((item) => this.state.queues.paddedLength(item.length)))
    return Math.floor(padded / member.tokens)
  }

  fullBatches(member: ShadowConsumer, waiting: readonly ShadowItem[]): number {
    // Disk and lanes are ready each for itself (S12).
    const shapes = new Map<string, { shape: number; count: number; tokens: number }>()
    for (const item of waiting) {
      if (item.state !== 'queued' || !this.holds(member, item)) continue
      const shape = this.state.queues.paddedLength(item.length)
      const key = `${shape}:${item.durable}`
      const held = shapes.get(key) ?? { shape, count: 0, tokens: 0 }
      shapes.set(key, held)
      held.count++
      held.tokens += item.length
    }
    const { batchSize, roundTo } = member.contract
    const { tokens } = member
    let full = 0
    for (const { shape, count, tokens: waitingTokens } of shapes.values()) {
      const padded = Math.ceil(shape / roundTo) * roundTo
      const size = Math.min(batchSize, Math.floor(this.mostPadded(member) / padded))
      const byTokens = waitingTokens / (tokens - shape + 1)
      const isActual = this.state.config.budgetRule === 'actual'
      full += Math.floor(Math.max(count / size, isActual ? byTokens : 0))
    }
    return full
  }

  /** After a death alone it waits leaseTimeout for another consumer. */
  mayHave(consumer: ShadowConsumer, item: ShadowItem, now: number): boolean {
    const { deathsAlone, lastConsumer, lastDeathAt } = item.suspicion!
    if (deathsAlone === 0 || consumer.name !== lastConsumer) return true
    return now >= lastDeathAt + this.state.config.leaseTimeoutMs * 1e6
  }
}

/** The least padded full count over several shapes, by trying all; waste 2 when there is none. */
export function spanOf(
  { contract, tokens }: ShadowConsumer,
  queues: ShadowQueues,
  waiting: readonly ShadowItem[],
): { readonly waste: number } {
  const lengths = waiting
    .filter((item) => item.state === 'queued' && !item.durable)
    .map((item) => queues.paddedLength(item.length))
    .sort((a, b) => b - a)
  let waste = 2
  lengths.forEach((longest, at) => {
    if (at > 0 && lengths[at - 1] === longest) return
    const padded = roundUp(longest, contract.roundTo)
    const count = Math.min(contract.batchSize, Math.floor(tokens / padded))
    if (count === 0 || at + count > lengths.length) return
    const own = sum(lengths.slice(at, at + count))
    if (own < count * longest) waste = Math.min(waste, 1 - own / (count * longest))
  })
  return { waste }
}
