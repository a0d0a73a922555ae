// A second, slow opinion of the core's state, made from its events and effects alone, and the
// invariants checked on it (scheduling.md, I1 to I8). It shares no code with the core.

import type { Core } from '../../src/core.js'
import type { Contract, CoreConfig } from '../../src/core-config.js'
import type { DispatchEffect, Effect } from '../../src/effects.js'
import type { CoreEvent } from '../../src/events.js'
import { SUBMIT_QUEUE_FULL } from '../../src/submission.js'
import { BatchJudge } from './batch-judge.js'
import { check } from './checks.js'
import { Invariants } from './invariants.js'
import { fresh, type ShadowItem } from './items.js'
import { Readiness } from './readiness.js'
import { Reports } from './reports.js'
import { ShadowState } from './state.js'

export class Shadow extends ShadowState {
  readonly invariants: Invariants
  private readonly reports: Reports
  private readonly judge: BatchJudge

  constructor(core: Core, config: CoreConfig) {
    super(core, config)
    const readiness = new Readiness(this)
    this.reports = new Reports(this)
    this.judge = new BatchJudge(this, readiness)
    this.invariants = new Invariants(this, readiness)
  }

  override restart(core: Core, stored: ReadonlySet<number>, now: number): void {
    super.restart(core, stored, now)
    this.invariants.restart()
  }

  apply(
    event: CoreEvent,
    effects: readonly Effect[],
    submitted: readonly ShadowItem[],
    now: number,
  ): void {
    this.applyEvent(event, now)
    if (HOLDING.has(event.type)) this.setHeld()
    for (const effect of effects) this.applyEffect(event, effect, submitted, now)
    if (event.type === 'deleteJob') this.endOnDisk(event.job)
  }

  private setHeld(): void {
    const before = this.onHold
    this.onHold = this.jobsOnHold()
    this.queues.setHeld(this.onHold)
    for (const item of this.unsettled) {
      if (before.has(item.job) && !this.onHold.has(item.job)) this.passedOver.wait(item)
    }
  }

  private applyEvent(event: CoreEvent, now: number): void {
    if (event.type === 'createJob') {
      this.flushed.set(event.job, false)
      this.queues.createJob(event.job, event.weight ?? 1)
      this.due.createJob(event.job, event.maxWaitMs)
    }
    if (event.type === 'flush') {
      for (const job of event.job === null ? [...this.flushed.keys()] : [event.job]) {
        this.flushed.set(job, true)
      }
    }
    if (event.type === 'tick') this.endRetries(now)
    if (event.type === 'tick') this.tickedAt = now
    if (event.type === 'stored') {
      event.items.sequences.forEach((number, i) => {
        const item = this.pending.get(number)
        this.pending.delete(number)
        if (item != null && event.items.codes[i] === 0) this.accept(number, item, now)
      })
    }
    if (event.type === 'loaded') {
      for (const number of event.items?.sequences ?? []) {
        const item = this.pending.get(number)
        this.pending.delete(number)
        if (item != null) this.accept(number, item, now)
      }
    }
    if (event.type === 'deleteJob' && event.job !== 0) this.flushed.delete(event.job)
    const consumer = 'consumer' in event ? this.consumers.get(event.consumer) : undefined
    if (consumer === undefined) return
    if (event.type === 'renew') consumer.heardAt = now
    if (event.type === 'room') consumer.hasRoom = event.hasRoom
    if (event.type === 'drain') consumer.draining = true
    if (event.type === 'taken') this.reports.take(consumer, event.batch)
    if (event.type === 'results') this.reports.report(consumer, event, now)
    if (event.type === 'disconnect') this.reports.blame(consumer, now)
  }

  private endRetries(now: number): void {
    for (const item of this.unsettled) {
      if (item.state !== 'retrying' || item.dueAt > now) continue
      item.state = 'queued'
      this.passedOver.wait(item)
      if (!item.durable) this.queues.arrive(item, false)
    }
  }

  private applyEffect(
    event: CoreEvent,
    effect: Effect,
    submitted: readonly ShadowItem[],
    now: number,
  ): void {
    switch (effect.type) {
      case 'submitted':
        this.refusedLength = refusedLength(event, effect.codes)
        effect.codes.forEach((code, i) => {
          if (code !== 0) return
          this.accept(++this.lastSequence, submitted[i], now)
          if (!submitted[i].durable) this.queues.arrive(submitted[i], true)
          this.flushed.set(submitted[i].job, false)
        })
        return
      case 'admitted':
        this.refusedLength = refusedLength(event, effect.codes)
        effect.sequences.forEach((number, i) => {
          if (number === 0) return
          check(number === ++this.lastSequence, 'a number that is not the next')
          this.pending.set(number, submitted[i])
        })
        return
      case 'reopened':
        this.flushed.set(effect.job, false)
        return
      case 'registered':
        if (event.type === 'register')
          this.addConsumer(event.consumer, event.name, event.contract, now)
        return
      case 'gate':
        check(!this.gateOpen, 'S9: the gate opened twice')
        this.gateOpen = true
        return
      case 'dispatch':
        this.dispatched(effect, now)
        return
      case 'settle':
        effect.items.forEach((slot, i) => {
          if (effect.status[i] === 'quarantined') {
            const { suspicion } = this.itemOf(slot)
            check(suspicion?.deathsAlone === 2, 'S27: quarantined before its second death alone')
          }
          this.settled(slot)
        })
        return
      case 'replayed':
        effect.codes.forEach((code, i) => {
          if (code !== 0) return
          const item = fresh(this.items.get(effect.items[i])!)
          this.accept(++this.lastSequence, item, now)
          this.queues.arrive(item, false)
        })
        return
      case 'budget':
        this.budgetChanged(effect)
        return
      case 'batchDone':
        this.done(effect.batch)
        return
      case 'reclaim':
        for (const number of effect.batches) this.takeBack(number)
        return
      case 'dead': {
        const consumer = this.consumers.get(effect.consumer)!
        if (event.type !== 'disconnect')
          this.reports.blame(consumer, now, effect.cause === 'lease_max')
        this.consumers.delete(effect.consumer)
        return
      }
      case 'cleanup':
        check(
          this.cleaning.has(effect.model) === (effect.state === 'end'),
          `cleanup ${effect.state} twice`,
        )
        if (effect.state === 'begin') this.cleaning.add(effect.model)
        else this.cleaning.delete(effect.model)
        return
      default:
    }
  }

  private budgetChanged(effect: Extract<Effect, { type: 'budget' }>): void {
    const consumer = this.consumers.get(effect.consumer)!
    const whole = effect.tokens === consumer.contract.tokens
    if (whole) check(consumer.reducedLeft === 0, 'S28: a whole budget before its time')
    else check(effect.tokens === consumer.tokens, `S28: a budget of ${effect.tokens} tokens`)
    consumer.tokens = effect.tokens
  }

  private addConsumer(id: number, name: string, contract: Contract, now: number): void {
    this.consumers.set(id, {
      id,
      name,
      contract,
      tokens: contract.tokens,
      reducedLeft: 0,
      draining: false,
      hasRoom: true,
      silent: false,
      heardAt: now,
      couldTakeSince: -1,
      channel: [],
      inFlight: [],
    })
  }

  private dispatched(effect: DispatchEffect, now: number): void {
    check(this.gateOpen, 'I3: dispatched while the gate is closed')
    const consumer = this.consumers.get(effect.consumer)!
    const items = [...effect.items].map((slot) => this.itemOf(slot))
    this.judge.checkSpan(effect, consumer, items)
    this.judge.checkDue(effect, consumer, items, now)
    this.passedOver.served(consumer.contract.model, items)
    for (const item of items) {
      check(
        item.state === 'queued' || item.state === 'reclaimed' || item.state === 'grouped',
        `I1: ${item.id} ${item.state}`,
      )
      check((item.state === 'grouped') === (effect.group !== null), 'S27: a group is issued alone')
      check(item.suspicion?.batch === items[0].suspicion?.batch, 'S27: groups were merged')
      check(item.model === consumer.contract.model, 'a batch of another model')
      if (item.state === 'queued' && !item.durable) {
        if (effect.sources.due > 0) this.queues.serveDue(item)
        else this.queues.serve(item)
      }
      item.state = 'leased'
      item.batch = effect.batch
    }
    this.judge.checkLimits(effect, consumer, items)
    const held = [...consumer.channel, ...consumer.inFlight]
    const suspect = items[0].suspicion?.kind === 'suspect'
    check(!held.some((one) => one.suspect), 'S27: a consumer of suspects got more')
    if (suspect) this.judge.checkSuspects(consumer, items, held, now)
    if (consumer.reducedLeft > 0) consumer.reducedLeft--
    const batch = {
      number: effect.batch,
      consumer: consumer.id,
      items,
      taken: false,
      group: effect.group !== null,
      suspect,
      tokens: consumer.tokens,
      reported: new Set<number>(),
    }
    this.batches.set(effect.batch, batch)
    consumer.channel.push(batch)
    check(consumer.channel.length <= this.config.channelDepth, 'I6: channel over its depth')
    check(!consumer.draining && consumer.hasRoom, 'I6: dispatched without a place')
  }
}

/** Events that put a job on hold or end that. */
const HOLDING = new Set<CoreEvent['type']>([
  'resultsStored',
  'resultsRead',
  'pauseJob',
  'resumeJob',
  'deleteJob',
  'restore',
])

function refusedLength(event: CoreEvent, codes: Uint8Array): number {
  const at = codes.indexOf(SUBMIT_QUEUE_FULL)
  return (event.type === 'submit' || event.type === 'admit') && at >= 0
    ? event.block.lengths[at]
    : 0
}
