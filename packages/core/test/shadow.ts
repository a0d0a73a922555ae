// A second, slow opinion of the core's state, made from its events and effects alone, and the
// invariants checked on it (scheduling.md, I1 to I8). It shares no code with the core.

import type { Core } from '../src/core.js'
import type { Contract, CoreConfig } from '../src/core-config.js'
import type { CoreCounts } from '../src/core-counts.js'
import type { DispatchEffect, Effect } from '../src/effects.js'
import {
  type CoreEvent,
  RESULT_COMPLETED,
  RESULT_FAILED,
  RESULT_OUT_OF_MEMORY,
} from '../src/events.js'
import { SUBMIT_QUEUE_FULL } from '../src/submission.js'
import { ShadowDue } from './shadow-due.js'
import { ShadowPassedOver } from './shadow-passed-over.js'
import { ShadowQueues } from './shadow-queues.js'

type ItemState = 'queued' | 'reclaimed' | 'retrying' | 'grouped' | 'leased' | 'settled'

export interface ShadowItem {
  readonly id: string
  readonly model: number
  readonly length: number
  readonly job: number
  /** On disk, so that it outlives the broker. */
  readonly durable: boolean
  state: ItemState
  batch: number
  /** Times it came back, and when it is due (S28). */
  returns: number
  dueAt: number
  /** When it must have ended, or Infinity (S35). */
  readonly deadlineAt: number
  /** From when its wait counts, and its own bound of it, or 0 (S16). */
  acceptedAt: number
  readonly maxWaitMs: number
  /** Kills whoever takes it (S27). */
  readonly poison: boolean
  suspicion: Suspicion | null
}

/** What deaths have made of an item (S27), or the batch of which it is a half (S28). */
interface Suspicion {
  readonly kind: 'suspect' | 'half'
  /** Items of the batch that was taken at the first death. */
  readonly firstSize: number
  deaths: number
  deathsAlone: number
  /** The batch it came back from: items of different ones are never merged. */
  batch: number
  lastConsumer: string
  lastDeathAt: number
}

export interface ShadowBatch {
  readonly number: number
  readonly consumer: number
  readonly items: readonly ShadowItem[]
  taken: boolean
  readonly group: boolean
  readonly suspect: boolean
  readonly tokens: number
  readonly reported: Set<number>
}

export interface ShadowConsumer {
  readonly id: number
  readonly name: string
  readonly contract: Contract
  /** Less than the contract's for a while after it ran out of memory (S28). */
  tokens: number
  reducedLeft: number
  draining: boolean
  hasRoom: boolean
  silent: boolean
  heardAt: number
  /** Since when it could take a batch and has not, or -1 (S24). */
  couldTakeSince: number
  readonly channel: ShadowBatch[]
  readonly inFlight: ShadowBatch[]
}

export class Shadow {
  /** By number. */
  readonly items = new Map<number, ShadowItem>()
  lastSequence = 0
  /** Numbers of items whose job was deleted: a restart does not know of them. */
  private readonly deleted = new Set<number>()
  /** Admitted, by number: their `stored` is under way. Null: of a job that is gone. */
  readonly pending = new Map<number, ShadowItem | null>()
  /** Those that have not ended: all that a check looks at. */
  private readonly unsettled = new Set<ShadowItem>()
  readonly batches = new Map<number, ShadowBatch>()
  /** Batches that were taken back: their results come late. */
  readonly lost: ShadowBatch[] = []
  readonly consumers = new Map<number, ShadowConsumer>()
  readonly flushed = new Map<number, boolean>([[0, false]])
  readonly cleaning = new Set<number>()
  private readonly queues: ShadowQueues
  private readonly due: ShadowDue
  private readonly passedOver: ShadowPassedOver
  gateOpen = false
  private tickedAt = -1
  /** Since when a model has had an idle consumer and work, per model (I8). */
  /** Length of the item that the last submission was refused for, or 0 (S13b). */
  private refusedLength = 0
  /** Jobs whose items are ready for nobody: as of the last event that changes it. */
  private onHold = new Set<number>()
  private readonly stuckSince = new Map<number, number>()

  constructor(
    private core: Core,
    private readonly config: CoreConfig,
  ) {
    this.queues = new ShadowQueues(config)
    this.due = new ShadowDue(config)
    this.passedOver = new ShadowPassedOver(
      config,
      (item) => `${item.model}:${this.queues.paddedLength(item.length)}`,
    )
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

  /** Without effects: what is on disk has no slot to tell of. */
  private endOnDisk(job: number): void {
    for (const item of this.unsettled) {
      if (item.job !== job) continue
      check(item.durable, `I1: the end of ${item.id} was not told`)
      item.state = 'settled'
      this.unsettled.delete(item)
    }
    for (const [number, item] of this.items) if (item.job === job) this.deleted.add(number)
    for (const [number, item] of this.pending) {
      if (item?.job === job) this.pending.set(number, null)
    }
  }

  /** The broker began anew: what is on disk is all that there is, whether it was told or not. */
  restart(core: Core, stored: ReadonlySet<number>, now: number): void {
    this.core = core
    for (const [number, item] of this.pending)
      if (item !== null && stored.has(number)) this.accept(number, item, now)
    this.pending.clear()
    for (const number of this.deleted) this.items.delete(number)
    this.deleted.clear()
    for (const [number, item] of this.items) {
      if (item.state === 'settled') continue
      if (item.durable) check(stored.has(number), `${item.id} is not on disk`)
      if (!item.durable) this.items.delete(number)
      if (!item.durable) this.unsettled.delete(item)
      item.state = 'queued'
      item.returns = 0
      item.suspicion = null
      item.acceptedAt = now
    }
    this.lastSequence = Math.max(0, ...stored, ...this.items.keys())
    for (const map of [this.batches, this.consumers, this.stuckSince]) map.clear()
    this.lost.length = 0
    this.cleaning.clear()
    this.queues.clear()
    this.onHold.clear()
    this.passedOver.clear()
    for (const item of this.unsettled) this.passedOver.wait(item)
    this.gateOpen = false
  }

  private accept(number: number, item: ShadowItem, now: number): void {
    item.acceptedAt = now
    this.items.set(number, item)
    this.unsettled.add(item)
    this.passedOver.wait(item)
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
    if (event.type === 'taken') this.take(consumer, event.batch)
    if (event.type === 'results') this.report(consumer, event, now)
    if (event.type === 'disconnect') this.blame(consumer, now)
  }

  /** False where it may take no more: it is dead then, and has not taken the batch (I6). */
  private take(consumer: ShadowConsumer, number: number): boolean {
    const at = consumer.channel.findIndex((batch) => batch.number === number)
    if (at < 0) return true
    if (consumer.inFlight.length >= consumer.contract.maxInFlight) return false
    const [batch] = consumer.channel.splice(at, 1)
    batch.taken = true
    consumer.couldTakeSince = -1
    consumer.inFlight.push(batch)
    return true
  }

  private endRetries(now: number): void {
    for (const item of this.unsettled) {
      if (item.state !== 'retrying' || item.dueAt > now) continue
      item.state = 'queued'
      this.passedOver.wait(item)
      if (!item.durable) this.queues.arrive(item, false)
    }
  }

  private report(
    consumer: ShadowConsumer,
    event: Extract<CoreEvent, { type: 'results' }>,
    now: number,
  ): void {
    const batch = this.batches.get(event.batch)
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
      item.dueAt = now + Math.min(this.config.retryDelayMs * 2 ** item.returns++, 30_000) * 1e6
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
    const rounding = Math.max(consumer.contract.roundTo, this.config.roundTo)
    const least = Math.min(roundUp(longest, rounding), batch.tokens)
    consumer.reducedLeft = 100
    consumer.tokens = Math.min(consumer.tokens, Math.max(Math.floor(batch.tokens / 2), least))
  }

  /** S27: all that the consumer had taken, and the head of its channel, is under suspicion. */
  private blame(consumer: ShadowConsumer, now: number, lives = false): void {
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
    const most = Math.ceil(Math.log2(next.firstSize)) + Math.max(2, this.config.poisonDeaths) + 1
    check(next.deaths <= most, `S27: ${item.id} has died with ${next.deaths} consumers`)
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
        if (event.type !== 'disconnect') this.blame(consumer, now, effect.cause === 'lease_max')
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

  private itemOf(slot: number): ShadowItem {
    const item = this.items.get(this.core.items.sequence(slot))
    check(item !== undefined, `slot ${slot} is not an item`)
    check(this.core.items.durable(slot) === item.durable, 'whether a slot is durable')
    check(this.core.items.length(slot) === item.length, 'length of a slot')
    check(this.core.items.model(slot) === item.model, 'model of a slot')
    check(this.core.items.job(slot) === item.job, 'job of a slot')
    return item
  }

  private settled(slot: number): void {
    const item = this.itemOf(slot)
    check(item.state !== 'settled', `I1: ${item.id} settled twice`)
    if (item.state === 'queued' && !item.durable) this.queues.withdraw(item)
    item.state = 'settled'
    this.unsettled.delete(item)
  }

  private dispatched(effect: DispatchEffect, now: number): void {
    check(this.gateOpen, 'I3: dispatched while the gate is closed')
    const consumer = this.consumers.get(effect.consumer)!
    const items = [...effect.items].map((slot) => this.itemOf(slot))
    this.checkSpan(effect, consumer, items)
    this.checkDue(effect, consumer, items, now)
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
    this.checkLimits(effect, consumer, items)
    const held = [...consumer.channel, ...consumer.inFlight]
    const suspect = items[0].suspicion?.kind === 'suspect'
    check(!held.some((one) => one.suspect), 'S27: a consumer of suspects got more')
    if (suspect) this.checkSuspects(consumer, items, held, now)
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

  private checkSuspects(
    consumer: ShadowConsumer,
    items: readonly ShadowItem[],
    held: readonly ShadowBatch[],
    now: number,
  ): void {
    check(held.length === 0, 'S27: suspects beside other work')
    const { deaths, firstSize } = items[0].suspicion!
    const splits = deaths - this.config.poisonDeaths + 1
    const most = Math.ceil(firstSize / 2 ** Math.max(0, splits))
    check(items.length <= most, `S27: ${items.length} of ${firstSize} after ${deaths} deaths`)
    check(items.length > 1 || this.mayHave(consumer, items[0], now), 'S27: the same consumer again')
  }

  /** After a death alone it waits leaseTimeout for another consumer. */
  private mayHave(consumer: ShadowConsumer, item: ShadowItem, now: number): boolean {
    const { deathsAlone, lastConsumer, lastDeathAt } = item.suspicion!
    if (deathsAlone === 0 || consumer.name !== lastConsumer) return true
    return now >= lastDeathAt + this.config.leaseTimeoutMs * 1e6
  }

  private checkLimits(
    effect: DispatchEffect,
    consumer: ShadowConsumer,
    items: readonly ShadowItem[],
  ): void {
    const { batchSize, roundTo, layout } = consumer.contract
    const { tokens } = consumer
    const isActual = this.config.budgetRule === 'actual'
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
      for (const other of this.membersOf(consumer.contract.model)) {
        check(!this.holds(other, items[0]), 'S5: alone, but another consumer holds it')
        check(other.tokens <= tokens, 'S5: alone, but not to the greatest budget')
      }
      return
    }
    check(items.length <= batchSize, 'I2: over batchSize')
    const mostPadded = this.mostPadded(consumer)
    check(padded * items.length <= mostPadded, 'I2: over tokens')
    if (isActual) check(actual <= tokens, 'I2: over tokens, actual')
    // Rounding finer than the shapes leaves room that no item of the shape fills, and so does a
    // class of several padded lengths.
    const shape = this.queues.paddedLength(longest)
    const whole = roundTo >= this.config.roundTo && shape - longest < this.config.roundTo
    const isOver = !this.holds(consumer, items[0])
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

  private done(number: number): void {
    const batch = this.batches.get(number)!
    check(batch.reported.size === batch.items.length, 'a batch done before it was reported')
    const consumer = this.consumers.get(batch.consumer)!
    consumer.inFlight.splice(consumer.inFlight.indexOf(batch), 1)
    this.batches.delete(number)
  }

  private takeBack(number: number): void {
    const batch = this.batches.get(number)!
    this.batches.delete(number)
    this.lost.push(batch)
    const consumer = this.consumers.get(batch.consumer)
    for (const list of consumer === undefined ? [] : [consumer.channel, consumer.inFlight]) {
      if (list.includes(batch)) list.splice(list.indexOf(batch), 1)
    }
    for (const item of batch.items) {
      if (item.state !== 'leased' || item.batch !== number) continue
      // What was a group stays one; what is under suspicion becomes one.
      item.state = item.suspicion === null ? 'reclaimed' : 'grouped'
    }
  }

  membersOf(model: number): ShadowConsumer[] {
    return [...this.consumers.values()].filter(
      (one) => !one.draining && one.contract.model === model,
    )
  }

  hasWork(): boolean {
    return this.unsettled.size > 0
  }

  /** Invariants after a step whose dispatches are done. */
  checkAll(now: number): void {
    const onHold = this.jobsOnHold(this.checkCounts())
    this.checkTaking(now)
    /** What is allowed to leave, by model. */
    const work = new Map<number, ShadowItem[]>()
    for (const item of this.unsettled) {
      if (item.deadlineAt <= this.tickedAt) check(false, `S35: ${item.id} is past its deadline`)
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

  private jobsOnHold({ jobs } = this.core.counts()): Set<number> {
    return new Set(jobs.filter((job) => job.onHold).map((job) => job.job))
  }

  checkCounts(): CoreCounts {
    const counts = this.core.counts()
    let leased = 0
    for (const item of this.unsettled) if (item.state === 'leased') leased++
    const settled = this.items.size - this.unsettled.size
    const waiting = this.items.size - leased - settled
    checkEqual(counts.accepted, this.items.size, 'I1: accepted')
    checkEqual(counts.leased, leased, 'I1: leased')
    checkEqual(counts.waiting.items, waiting, 'I1: waiting')
    check(sum(Object.values(counts.settled)) === settled, 'I1: settled')
    check(counts.reserved.items === this.pending.size, 'I1: reserved')
    const tiers = Object.values(counts.queue)
    check(sum(tiers.map((tier) => tier.items)) === waiting, 'I1: tiers')
    check(sum(tiers.map((tier) => tier.tokens)) === counts.waiting.tokens, 'I1: tokens of tiers')
    check(counts.consumers.length === this.consumers.size, 'I6: consumers')
    for (const one of counts.consumers) {
      const shadow = this.consumers.get(one.id)!
      check(one.channel === shadow.channel.length, 'I6: channel')
      check(one.inFlight === shadow.inFlight.length, 'I6: in flight')
      check(one.inFlight <= one.contract.maxInFlight, 'I6: maxInFlight')
    }
    return counts
  }

  /** S24: no batch stands for ever in the channel of a consumer that could take it. */
  private checkTaking(now: number): void {
    for (const one of this.consumers.values()) {
      const could = one.channel.length > 0 && one.inFlight.length < one.contract.maxInFlight
      if (!could) one.couldTakeSince = -1
      else if (one.couldTakeSince < 0) one.couldTakeSince = now
      else
        check(
          now - one.couldTakeSince <= this.config.leaseMaxMs * 1e6,
          `S24: ${one.id} takes nothing`,
        )
    }
  }

  /** I5: a free place and work that is ready for it and allowed to it never coexist. */
  private checkWorkConserving(model: number, allowed: readonly ShadowItem[]): void {
    if (!this.gateOpen) return
    const members = this.membersOf(model)
    const waiting = allowed.filter((item) => item.state === 'queued' || item.state === 'reclaimed')
    if (waiting.length === 0 || members.length === 0) return
    const stillOpen = this.isInputOpen(model)
    const atLimit = this.hasSpans() && this.isAtLimit()
    // One consumer of the model may be emptying for suspects that wait (S27).
    let passedOver = allowed.some(
      (item) => item.state === 'grouped' && item.suspicion!.kind === 'suspect',
    )
      ? 1
      : 0
    for (const member of members) {
      if (!member.hasRoom || member.channel.length >= this.config.channelDepth) continue
      const held = [...member.channel, ...member.inFlight]
      if (held.some((batch) => batch.suspect)) continue
      const full = this.fullBatches(member, waiting)
      const left = Math.max(full, this.paddedBatches(member, waiting))
      const few = !stillOpen && left < members.length * this.config.channelDepth
      const tail = few || this.cleaning.has(model)
      if (tail && member.channel.length > 0) continue
      // Plain rules leave full batches behind on purpose; the rest holds for them too.
      if (this.config.serve === 'first') continue
      const { waste } = spanOf(member, this.queues, waiting)
      const isSpanReady = waste <= 1 && (waste < this.mostWaste(member) - 1e-9 || atLimit)
      const isDue = (item: ShadowItem) =>
        item.state === 'queued' && this.due.at(item) <= this.tickedAt && this.holds(member, item)
      const isFull = full > 0 || isSpanReady || waiting.some(isDue)
      if (passedOver > 0 && held.length > 0 && this.isOwed(member, isFull, waiting, members)) {
        passedOver--
        continue
      }
      check(full === 0, `I5: consumer ${member.id} has a place and a full batch waits`)
      check(!isSpanReady, `I5: consumer ${member.id} has a place, a span of ${waste} waits`)
      for (const item of waiting) {
        const ready = item.state === 'reclaimed' || this.cleaning.has(model)
        const holds = this.holds(member, item)
        check(!isDue(item), `I5: ${item.id} is due and waits beside a place`)
        check(!(ready && holds), `I5: ${item.id} (${item.state}) waits beside a place`)
        const alone = members.every((one) => !this.holds(one, item))
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
      const ready = item.state === 'reclaimed' || this.cleaning.has(item.model)
      const alone = members.every((one) => !this.holds(one, item))
      return (alone && most) || (ready && this.holds(member, item))
    })
  }

  /** I5 for groups: none waits beside a consumer that is free for it and takes whatever others do. */
  private checkGroups(model: number, allowed: readonly ShadowItem[], now: number): void {
    if (!this.gateOpen) return
    const members = this.membersOf(model)
    for (const member of members) {
      const { batchSize } = member.contract
      if (!member.hasRoom || member.channel.length + member.inFlight.length > 0) continue
      const greatest = members.every(
        (one) =>
          one.contract.batchSize <= batchSize &&
          one.tokens <= member.tokens &&
          this.mostPadded(one) <= this.mostPadded(member) &&
          one.contract.roundTo >= member.contract.roundTo,
      )
      if (!greatest) continue
      for (const item of allowed) {
        if (item.state !== 'grouped') continue
        check(!this.mayHave(member, item, now), `I5: ${item.id} waits in a group beside a place`)
      }
    }
  }

  /** The most of items x padded length in a batch (S17, S18). */
  private mostPadded({ contract, tokens }: ShadowConsumer): number {
    if (this.config.budgetRule === 'padded') return tokens
    return contract.layout === 'padded' ? Math.floor(tokens * 1.25) : Infinity
  }

  /** Whether every item of the item's shape is within the budget (S5). */
  private holds(member: ShadowConsumer, item: ShadowItem): boolean {
    const { tokens } = member
    const { roundTo } = member.contract
    const shape = this.queues.paddedLength(item.length)
    const padded = Math.ceil(shape / roundTo) * roundTo
    const withinActual = this.config.budgetRule === 'padded' || shape <= tokens
    return withinActual && padded <= this.mostPadded(member)
  }

  /** S13a, S13b: a span pads no more than the consumer's need allows, or it is the least padded. */
  private checkSpan(
    effect: DispatchEffect,
    consumer: ShadowConsumer,
    items: readonly ShadowItem[],
  ): void {
    const { roundTo, batchSize } = consumer.contract
    // A due batch of a full shape is normal and takes fillers, which no span allows (S16).
    if (!effect.normal || effect.source === 'due' || effect.sources.disk > 0 || !this.hasSpans())
      return
    const lengths = items.map((item) => this.queues.paddedLength(item.length))
    const longest = Math.max(...lengths)
    if (lengths.every((length) => length === longest)) return
    // Items that end below the edge of their class leave room for more than the span's full count.
    const count = Math.min(batchSize, Math.floor(consumer.tokens / roundUp(longest, roundTo)))
    check(lengths.length >= count, 'S13a: a span of less than a full count')
    const span = lengths.sort((a, b) => b - a).slice(0, count)
    const waste = 1 - sum(span) / (longest * count)
    const waiting = [...this.unsettled].filter(
      (item) => item.model === consumer.contract.model && !this.onHold.has(item.job),
    )
    if (!this.inputLengthsDiffer(consumer.contract.model)) {
      check(this.fullBatches(consumer, waiting) === 0, 'S13b: a span before a lane that is full')
    }
    if (waste <= this.mostWaste(consumer) + 1e-9) return
    // At the limit, and in no other case: as for the most need, and beyond that the least padded there is.
    check(this.isAtLimit(), `S13b: a span that pads ${waste}`)
    if (waste <= this.config.spanWaste.at(-1)! + 1e-9) return
    const least = spanOf(consumer, this.queues, waiting).waste
    check(waste <= least + 1e-9, `S13b: a span that pads ${waste}, though one pads ${least}`)
  }

  /** S12, S16: due work leaves before lanes and disk, what was due first before what was due later. */
  private checkDue(
    effect: DispatchEffect,
    consumer: ShadowConsumer,
    items: readonly ShadowItem[],
    now: number,
  ): void {
    const { model } = consumer.contract
    const first = Math.min(...items.map((item) => this.due.at(item)))
    const isSure = this.config.starveBatches === 0 && this.config.mode === 'memory'
    if (effect.source === 'due' && isSure) check(first <= now, 'S16: nothing in a due batch is due')
    // Over-budget items and due ones take turns (S5).
    const isAlone = !this.holds(consumer, items[0])
    const isAhead = effect.group !== null || effect.source === 'reclaimed' || isAlone
    if (isAhead || this.inputLengthsDiffer(model)) return
    const waiting = [...this.unsettled].filter(
      (item) => item.model === model && item.state === 'queued' && !this.onHold.has(item.job),
    )
    const left = waiting.filter((item) => this.holds(consumer, item) && !items.includes(item))
    if (effect.source !== 'due') this.checkPassedOver(left, items)
    // In disk mode an older shape may be on its way from disk, or have been older than it turned out.
    if (effect.source === 'due' && !isSure) return
    const bound = effect.source === 'due' ? first : Number.POSITIVE_INFINITY
    for (const item of left) {
      const at = this.due.at(item)
      if (at > this.tickedAt || at >= bound) continue
      const like = waiting.filter((one) => this.standsWith(one, item))
      const isOwn = this.due.hasOwn(item)
      // What is full anyway keeps its turn (S13), unless the item has a wait of its own.
      check(
        !isOwn && this.fullBatches(consumer, like) > 0,
        `S16: ${item.id} is due and was passed over`,
      )
    }
  }

  /** I7: a shape whose items have no wait is due when it was passed over for long. */
  private checkPassedOver(left: readonly ShadowItem[], taken: readonly ShadowItem[]): void {
    const withoutWait = left.filter((item) => this.due.at(item) === Number.POSITIVE_INFINITY)
    const found = this.passedOver.find(withoutWait, taken)
    check(found === null, `I7: ${found?.id} was passed over for too many batches`)
  }

  private standsWith(one: ShadowItem, item: ShadowItem): boolean {
    const shapes = [one, item].map(({ length }) => this.queues.paddedLength(length))
    return shapes[0] === shapes[1]
  }

  private hasSpans(): boolean {
    const { readyRule, budgetRule, spanWaste } = this.config
    return readyRule === 'full-batch' && budgetRule === 'padded' && spanWaste.some((one) => one > 0)
  }

  private mostWaste({ channel, inFlight, contract }: ShadowConsumer): number {
    const { spanWaste } = this.config
    const need = channel.length > 0 ? 0 : inFlight.length > 0 ? 1 : 2
    if (need < 2 && !this.isInputOpen(contract.model)) return -1
    return this.hasSpans() ? spanWaste[Math.min(need, spanWaste.length - 1)] : -1
  }

  /** The queue is at its limit: what was refused last does not fit. */
  private isAtLimit(): boolean {
    if (this.refusedLength === 0) return false
    const { reserved } = this.core.counts()
    const waiting = [...this.unsettled].filter((item) => item.state !== 'leased')
    const tokens = sum(waiting.map((item) => item.length)) + reserved.tokens + this.refusedLength
    const { maxQueuedItems, maxQueuedTokens } = this.config
    return waiting.length + reserved.items >= maxQueuedItems || tokens > maxQueuedTokens
  }

  private isInputOpen(model: number): boolean {
    for (const { model: its, state, job } of this.unsettled) {
      if (its === model && state !== 'leased' && this.flushed.get(job) === false) return true
    }
    return false
  }

  private inputLengthsDiffer(model: number): boolean {
    return new Set(this.membersOf(model).map((one) => one.contract.inputLength)).size > 1
  }

  /** Batches that the queued padded tokens fill, where shapes complete each other (S11). */
  private paddedBatches(member: ShadowConsumer, waiting: readonly ShadowItem[]): number {
    if (!this.hasSpans()) return 0
    const queued = waiting.filter((item) => item.state === 'queued' && !item.durable)
    const padded = sum(queued.map((item) => this.queues.paddedLength(item.length)))
    return Math.floor(padded / member.tokens)
  }

  private fullBatches(member: ShadowConsumer, waiting: readonly ShadowItem[]): number {
    // Disk and lanes are ready each for itself (S12).
    const shapes = new Map<string, { shape: number; count: number; tokens: number }>()
    for (const item of waiting) {
      if (item.state !== 'queued' || !this.holds(member, item)) continue
      const shape = this.queues.paddedLength(item.length)
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
      const isActual = this.config.budgetRule === 'actual'
      full += Math.floor(Math.max(count / size, isActual ? byTokens : 0))
    }
    return full
  }

  /**
   * I8: work and an idle live consumer that may have it do not coexist for longer than S29 lets
   * them. While a live consumer's channel holds a batch, S29 waits for it, so the clock stands.
   */
  private checkProgress(model: number, work: readonly ShadowItem[], now: number): void {
    const members = this.membersOf(model)
    const queued = work.filter((item) => item.state === 'queued')
    const idle = members.some(
      (one) =>
        one.channel.length === 0 &&
        one.inFlight.length === 0 &&
        !one.silent &&
        queued.some((item) => this.holds(one, item)),
    )
    const waits = members.some((one) => !one.hasRoom || (!one.silent && one.channel.length > 0))
    if (!this.gateOpen || !idle || waits) {
      this.stuckSince.delete(model)
      return
    }
    const since = this.stuckSince.get(model) ?? now
    this.stuckSince.set(model, since)
    const bound = Math.max(this.config.cleanupIdleMs, this.config.leaseTimeoutMs) * 1_000_000
    check(now - since <= bound, `I8: model ${model} stuck for ${now - since} ns`)
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

function suspicion(kind: Suspicion['kind'], batch: ShadowBatch): Suspicion {
  return {
    kind,
    firstSize: batch.items.length,
    deaths: 0,
    deathsAlone: 0,
    batch: batch.number,
    lastConsumer: '',
    lastDeathAt: 0,
  }
}

/** The item as it was submitted; a replayed one has no deadline, and is in memory. */
export function fresh(item: ShadowItem): ShadowItem {
  return {
    ...item,
    durable: false,
    state: 'queued',
    batch: 0,
    returns: 0,
    dueAt: 0,
    deadlineAt: Number.POSITIVE_INFINITY,
    maxWaitMs: 0,
    suspicion: null,
  }
}

function refusedLength(event: CoreEvent, codes: Uint8Array): number {
  const at = codes.indexOf(SUBMIT_QUEUE_FULL)
  return (event.type === 'submit' || event.type === 'admit') && at >= 0
    ? event.block.lengths[at]
    : 0
}

/** The least padded full count over several shapes, by trying all; waste 2 when there is none. */
function spanOf(
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

function roundUp(length: number, multiple: number): number {
  return Math.ceil(length / multiple) * multiple
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

function checkEqual(found: number, expected: number, what: string): void {
  if (found !== expected) throw new Error(`${what} ${found}, not ${expected}`)
}

export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}
