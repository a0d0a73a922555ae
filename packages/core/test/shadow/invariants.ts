// The invariants that hold after every step whose dispatches are done (I1, I5, I6, I8, S24, S35).

import type { CoreCounts } from '../../src/core-counts.js'
import { check, checkEqual, sum } from './checks.js'
import type { ShadowConsumer, ShadowItem } from './items.js'
import { type Readiness, spanOf } from './readiness.js'
import type { ShadowState } from './state.js'

export class Invariants {
  /** Since when a model has had an idle consumer and work (I8). */
  private readonly stuckSince = new Map<number, number>()

  constructor(
    private readonly state: ShadowState,
    private readonly readiness: Readiness,
  ) {}

  /** The broker began anew. */
  restart(): void {
    this.stuckSince.clear()
  }

  /** Invariants after a step whose dispatches are done. */
  checkAll(now: number): void {
    const onHold = this.state.jobsOnHold(this.checkCounts())
    this.checkTaking(now)
    /** What is allowed to leave, by model. */
    const work = new Map<number, ShadowItem[]>()
    for (const item of this.state.unsettled) {
      if (item.deadlineAt <= this.state.tickedAt)
        check(false, `S35: ${item.id} is past its deadline`)
      const items = work.get(item.model)
      const allowed = item.state !== 'leased' && !onHold.has(item.job)
      if (items === undefined) work.set(item.model, allowed ? [item] : [])
      else if (allowed) items.push(item)
    }
    for (const model of this.stuckSince.keys()) if (!work.has(model)) this.stuckSince.delete(model)
    for (const [model, ready] of work) {
      this.checkWorkConserving(model, ready)
      this.checkGroups(model, ready, now)
      this.checkProgress(model, ready, now)
    }
  }

  checkCounts(): CoreCounts {
    const counts = this.state.counts()
    let leased = 0
    for (const item of this.state.unsettled) if (item.state === 'leased') leased++
    const settled = this.state.items.size - this.state.unsettled.size
    const waiting = this.state.items.size - leased - settled
    checkEqual(counts.accepted, this.state.items.size, 'I1: accepted')
    checkEqual(counts.leased, leased, 'I1: leased')
    checkEqual(counts.waiting.items, waiting, 'I1: waiting')
    check(sum(Object.values(counts.settled)) === settled, 'I1: settled')
    check(counts.reserved.items === this.state.pending.size, 'I1: reserved')
    const tiers = Object.values(counts.queue)
    check(sum(tiers.map((tier) => tier.items)) === waiting, 'I1: tiers')
    check(sum(tiers.map((tier) => tier.tokens)) === counts.waiting.tokens, 'I1: tokens of tiers')
    check(counts.consumers.length === this.state.consumers.size, 'I6: consumers')
    for (const one of counts.consumers) {
      const shadow = this.state.consumers.get(one.id)!
      check(one.channel === shadow.channel.length, 'I6: channel')
      check(one.inFlight === shadow.inFlight.length, 'I6: in flight')
      check(one.inFlight <= one.contract.maxInFlight, 'I6: maxInFlight')
    }
    return counts
  }

  /** S24: no batch stands for ever in the channel of a consumer that could take it. */
  private checkTaking(now: number): void {
    for (const one of this.state.consumers.values()) {
      const could = one.channel.length > 0 && one.inFlight.length < one.contract.maxInFlight
      if (!could) one.couldTakeSince = -1
      else if (one.couldTakeSince < 0) one.couldTakeSince = now
      else
        check(
          now - one.couldTakeSince <= this.state.config.leaseMaxMs * 1e6,
          `S24: ${one.id} takes nothing`,
        )
    }
  }

  /** I5: a free place and work that is ready for it and allowed to it never coexist. */
  private checkWorkConserving(model: number, allowed: readonly ShadowItem[]): void {
    if (!this.state.gateOpen) return
    const members = this.state.membersOf(model)
    const waiting = allowed.filter((item) => item.state === 'queued' || item.state === 'reclaimed')
    if (waiting.length === 0 || members.length === 0) return
    const stillOpen = this.readiness.isInputOpen(model)
    const atLimit = this.readiness.hasSpans() && this.readiness.isAtLimit()
    // One consumer of the model may be emptying for suspects that wait (S27).
    let passedOver = allowed.some(
      (item) => item.state === 'grouped' && item.suspicion!.kind === 'suspect',
    )
      ? 1
      : 0
    for (const member of members) {
      if (!member.hasRoom || member.channel.length >= this.state.config.channelDepth) continue
      const held = [...member.channel, ...member.inFlight]
      if (held.some((batch) => batch.suspect)) continue
      const full = this.readiness.fullBatches(member, waiting)
      const left = Math.max(full, this.readiness.paddedBatches(member, waiting))
      const few = !stillOpen && left < members.length * this.state.config.channelDepth
      const tail = few || this.state.cleaning.has(model)
      if (tail && member.channel.length > 0) continue
      // Plain rules leave full batches behind on purpose; the rest holds for them too.
      if (this.state.config.serve === 'first') continue
      const { waste } = spanOf(member, this.state.queues, waiting)
      const isSpanReady = waste <= 1 && (waste < this.readiness.mostWaste(member) - 1e-9 || atLimit)
      const isDue = (item: ShadowItem) =>
        item.state === 'queued' &&
        this.state.due.at(item) <= this.state.tickedAt &&
        this.readiness.holds(member, item)
      const isFull = full > 0 || isSpanReady || waiting.some(isDue)
      if (passedOver > 0 && held.length > 0 && this.isOwed(member, isFull, waiting, members)) {
        passedOver--
        continue
      }
      check(full === 0, `I5: consumer ${member.id} has a place and a full batch waits`)
      check(!isSpanReady, `I5: consumer ${member.id} has a place, a span of ${waste} waits`)
      for (const item of waiting) {
        const ready = item.state === 'reclaimed' || this.state.cleaning.has(model)
        const holds = this.readiness.holds(member, item)
        check(!isDue(item), `I5: ${item.id} is due and waits beside a place`)
        check(!(ready && holds), `I5: ${item.id} (${item.state}) waits beside a place`)
        const alone = members.every((one) => !this.readiness.holds(one, item))
        const most = members.every((one) => one.tokens <= member.tokens)
        check(!(alone && most), `I5: ${item.id} is over every budget and waits beside a place`)
      }
    }
  }

  /** Whether this member would be served, were it not kept. */
  private isOwed(
    member: ShadowConsumer,
    isFull: boolean,
    waiting: readonly ShadowItem[],
    members: readonly ShadowConsumer[],
  ): boolean {
    if (isFull) return true
    const most = members.every((one) => one.tokens <= member.tokens)
    return waiting.some((item) => {
      const ready = item.state === 'reclaimed' || this.state.cleaning.has(item.model)
      const alone = members.every((one) => !this.readiness.holds(one, item))
      return (alone && most) || (ready && this.readiness.holds(member, item))
    })
  }

  /** I5 for groups: none waits beside a consumer that is free for it and takes whatever others do. */
  private checkGroups(model: number, allowed: readonly ShadowItem[], now: number): void {
    if (!this.state.gateOpen) return
    const members = this.state.membersOf(model)
    for (const member of members) {
      const { batchSize } = member.contract
      if (!member.hasRoom || member.channel.length + member.inFlight.length > 0) continue
      const greatest = members.every(
        (one) =>
          one.contract.batchSize <= batchSize &&
          one.tokens <= member.tokens &&
          this.readiness.mostPadded(one) <= this.readiness.mostPadded(member) &&
          one.contract.roundTo >= member.contract.roundTo,
      )
      if (!greatest) continue
      for (const item of allowed) {
        if (item.state !== 'grouped') continue
        check(
          !this.readiness.mayHave(member, item, now),
          `I5: ${item.id} waits in a group beside a place`,
        )
      }
    }
  }

  /**
   * I8: work and an idle live consumer that may have it do not coexist for longer than S29 lets
   * them. While a live consumer's channel holds a batch, S29 waits for it, so the clock stands.
   */
  private checkProgress(model: number, work: readonly ShadowItem[], now: number): void {
    const members = this.state.membersOf(model)
    const queued = work.filter((item) => item.state === 'queued')
    const idle = members.some(
      (one) =>
        one.channel.length === 0 &&
        one.inFlight.length === 0 &&
        !one.silent &&
        queued.some((item) => this.readiness.holds(one, item)),
    )
    const waits = members.some((one) => !one.hasRoom || (!one.silent && one.channel.length > 0))
    if (!this.state.gateOpen || !idle || waits) {
      this.stuckSince.delete(model)
      return
    }
    const since = this.stuckSince.get(model) ?? now
    this.stuckSince.set(model, since)
    const bound =
      Math.max(this.state.config.cleanupIdleMs, this.state.config.leaseTimeoutMs) * 1_000_000
    check(now - since <= bound, `I8: model ${model} stuck for ${now - since} ns`)
  }
}
