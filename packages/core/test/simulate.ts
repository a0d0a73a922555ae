// Runs a workload against the core: arrivals, deaths, late results, nacks, retries, flushes, drains.
// After every step the shadow checks the invariants.

import { Core } from '../src/core.js'
import type { CoreConfig } from '../src/core-config.js'
import type { Effect } from '../src/effects.js'
import type { CoreEvent } from '../src/events.js'
import type { StoredItems, SubmitBlock } from '../src/submission.js'
import { block, config, contract, LIFE, MS } from './helpers.js'
import { ModelStore } from './model-store.js'
import { check } from './shadow/checks.js'
import { type ShadowItem, submittedItem } from './shadow/items.js'
import { Shadow } from './shadow/shadow.js'
import { isIn, Workers } from './workers.js'
import type { Operation, Workload } from './workload.js'

export interface Log {
  /** Events with their times, and effects, as text: what two runs are compared by. */
  readonly events: string[]
  readonly effects: string[]
}

/** So small that records fill many: the bytes of items move on from segment to segment. */
const SEGMENT_BYTES = 2048

type LoadEffect = Extract<Effect, { type: 'load' }>
type Submit = Extract<Operation, { op: 'submit' }>

const text = (value: unknown): string =>
  JSON.stringify(value, (_, field) => {
    if (typeof field === 'bigint') return field.toString()
    return ArrayBuffer.isView(field) ? [...(field as unknown as number[])] : field
  })

export class Simulation {
  core: Core
  private readonly store: ModelStore | null
  /** Loads to be answered, and appends whose end is to be told: each in their order. */
  private readonly loads: LoadEffect[] = []
  private readonly appends: StoredItems[] = []
  readonly shadow: Shadow
  private readonly workers: Workers
  readonly config: CoreConfig
  private now = 0
  nextConsumer = 1
  private nextJob = 1
  /** How many loads the operation under way may still have answered. */
  private loadsLeft = Number.POSITIVE_INFINITY
  readonly log: Log = { events: [], effects: [] }
  /** Operations that have begun: where a failure lies. */
  begun = 0

  constructor(
    private readonly workload: Workload,
    private readonly logs = false,
  ) {
    this.config = { ...config(workload.config), segmentBytes: SEGMENT_BYTES }
    this.store = this.config.mode === 'disk' ? new ModelStore() : null
    this.core = new Core(this.config)
    this.shadow = new Shadow(this.core, this.config)
    this.workers = new Workers(this, workload.memoryTokens)
  }

  run(): void {
    for (const operation of this.workload.operations) {
      this.begun++
      this.loadsLeft = operation.loads ?? Number.POSITIVE_INFINITY
      this.act(operation)
    }
    this.loadsLeft = Number.POSITIVE_INFINITY
    this.finish()
  }

  step(event: CoreEvent, submitted: readonly ShadowItem[] = []): void {
    this.one(event, submitted)
    for (;;) {
      while (this.one({ type: 'dispatch' }).some((effect) => effect.type === 'dispatch'));
      if (this.loads.length === 0) break
      // A slow disk: what is ready may wait for it, the counts hold all the same.
      if (this.loadsLeft === 0) {
        this.shadow.invariants.checkCounts()
        return
      }
      this.loadsLeft--
      this.answerLoad(this.loads.shift()!)
    }
    this.shadow.invariants.checkAll(this.now)
  }

  private answerLoad({ job, model, paddedLength, tokens }: LoadEffect): void {
    const items = this.store!.load(job, model, paddedLength, tokens)
    this.one({ type: 'loaded', job, model, paddedLength, items })
  }

  private one(event: CoreEvent, submitted: readonly ShadowItem[] = []): readonly Effect[] {
    const effects = this.core.step(event, this.now)
    if (this.logs) this.log.events.push(`${this.now} ${text(event)}`)
    if (this.logs) this.log.effects.push(text(effects))
    this.shadow.apply(event, effects, submitted, this.now)
    for (const effect of effects) {
      if (effect.type === 'load') this.loads.push(effect)
      if (effect.type === 'lost') check(false, `I1: ${effect.items} items are lost`)
    }
    this.store?.keep(this.core, event, effects)
    return effects
  }

  private act(operation: Operation): void {
    switch (operation.op) {
      case 'createJob':
        this.createJob(operation)
        return
      case 'submit':
        this.submit(operation)
        return
      case 'stored':
        this.tellStored()
        return
      case 'pass':
        this.pass(operation.ms)
        return
      case 'register': {
        const { name, contract } = operation
        if (this.shadow.consumers.size >= 6) return
        const consumer = this.nextConsumer++
        this.step({ type: 'register', consumer, name: `gpu${name}`, contract })
        return
      }
      case 'late': {
        const { lost } = this.shadow
        if (lost.length === 0) return
        const consumer = operation.consumer % (this.nextConsumer + 1)
        this.workers.report(consumer, lost[operation.batch % lost.length], operation)
        return
      }
      case 'flush':
        this.step({ type: 'flush', job: operation.job === null ? null : this.job(operation.job) })
        return
      case 'deleteJob':
        this.step({ type: 'deleteJob', job: this.job(operation.job) })
        return
      case 'pause':
        this.step({ type: 'pauseJob', job: this.job(operation.job) })
        return
      case 'resume':
        this.step({ type: 'resumeJob', job: this.job(operation.job) })
        return
      case 'restart':
        if (this.store !== null) this.restart(this.store)
        return
      case 'resultsStored':
      case 'resultsRead':
        this.step({ type: operation.op, job: this.job(operation.job), bytes: operation.bytes })
        return
      case 'cancel':
        this.cancel(this.job(operation.job), operation.mask)
        return
      case 'replay':
      case 'discard': {
        const numbers = [...this.core.quarantined.keys()]
        const items = numbers.filter((_, at) => isIn(operation.mask, at))
        this.step({ type: operation.op, items })
        return
      }
      default:
        this.actOn(operation)
    }
  }

  /** What is done to or by a consumer; one that is silent does nothing. */
  private actOn(operation: Extract<Operation, { consumer: number }>): void {
    const consumers = [...this.shadow.consumers.values()].filter((one) => !one.silent)
    if (consumers.length === 0) return
    const consumer = consumers[operation.consumer % consumers.length]
    switch (operation.op) {
      case 'take':
      case 'work':
        this.workers.consume(consumer, operation)
        return
      case 'silence':
        consumer.silent = true
        return
      case 'drain':
        this.step({ type: 'drain', consumer: consumer.id })
        return
      case 'disconnect':
        this.step({ type: 'disconnect', consumer: consumer.id, cause: 'connection_closed' })
        return
      case 'room':
        this.step({ type: 'room', consumer: consumer.id, hasRoom: operation.hasRoom })
        return
      case 'takeStray':
        this.workers.takeStray(consumer, operation.batch)
        return
      case 'unknown':
        this.workers.results(consumer.id, 1_000_000, [0], [0], operation.isOtherLife ? 1n : LIFE)
        return
      default:
    }
  }

  private createJob({ weight, maxWaitMs }: Extract<Operation, { op: 'createJob' }>): void {
    const job = this.nextJob++
    this.step({ type: 'createJob', job, weight, ...(maxWaitMs === undefined ? {} : { maxWaitMs }) })
  }

  private job(number: number): number {
    const jobs = [...this.shadow.flushed.keys()]
    return jobs[number % jobs.length]
  }

  private submit({ job: number, items: specs, volatile, full, later }: Submit): void {
    const job = this.job(number)
    const isDurable = this.store !== null && !volatile
    const items = specs.map((spec) => submittedItem(spec, job, isDurable, this.now))
    const made = block(
      specs.map((spec) => ({ ...spec, id: `m${spec.id}` })),
      job,
    )
    if (this.store === null || !isDurable) {
      this.step({ type: 'submit', block: made }, items)
      return
    }
    for (const effect of this.one({ type: 'admit', block: made }, items)) {
      if (effect.type === 'admitted') this.append(this.store, made, items, effect, full === true)
    }
    if (!later) this.tellStored()
  }

  /** The disk is quick or slow; it may be full. */
  private append(
    store: ModelStore,
    { job, model, lengths }: SubmitBlock,
    items: readonly ShadowItem[],
    { sequences }: Extract<Effect, { type: 'admitted' }>,
    full: boolean,
  ): void {
    const numbered = items.map((item, i) => ({ ...item, sequence: sequences[i] }))
    const codes = full ? new Uint8Array(items.length).fill(4) : store.append(numbered)
    this.appends.push({ job, model, lengths, sequences, codes })
  }

  private tellStored(): void {
    const items = this.appends.shift()
    if (items !== undefined) this.step({ type: 'stored', items })
  }

  /** The broker dies and begins anew with what is on disk. */
  private restart(store: ModelStore): void {
    this.loads.length = 0
    this.appends.length = 0
    this.core = new Core(this.config)
    store.startedAt = this.now
    this.shadow.restart(this.core, new Set(store.items.keys()), this.now)
    for (const [id, { flushed }] of store.jobs) this.shadow.flushed.set(id, flushed)
    const { lastSequence } = this.shadow
    this.step({ type: 'restore', lastSequence, jobs: store.restored() })
  }

  /** Time goes on; consumers that are not silent renew in time, timers fire at theirs. */
  private pass(ms: number): void {
    const end = this.now + Math.floor(ms * MS)
    while (this.core.nextTimerAt() <= end) {
      this.now = Math.max(this.now, this.core.nextTimerAt())
      for (const one of [...this.shadow.consumers.values()]) {
        if (!one.silent && this.now >= one.heardAt + (this.config.leaseTimeoutMs * MS) / 4) {
          this.one({ type: 'renew', consumer: one.id })
        }
      }
      this.step({ type: 'tick' })
    }
    this.now = end
    for (const one of [...this.shadow.consumers.values()]) {
      if (!one.silent) this.one({ type: 'renew', consumer: one.id })
    }
    this.step({ type: 'tick' })
  }

  /** I4: input has ended, every served model's work drains, every gauge is 0. */
  private finish(): void {
    while (this.appends.length > 0) this.tellStored()
    for (const one of [...this.shadow.consumers.values()]) {
      if (!one.hasRoom) this.step({ type: 'room', consumer: one.id, hasRoom: true })
    }
    for (const model of this.models()) {
      const consumer = this.nextConsumer++
      const made = contract({ model, tokens: 64 })
      this.step({ type: 'register', consumer, name: 'last', contract: made })
    }
    for (const job of this.shadow.flushed.keys()) {
      this.step({ type: 'resultsRead', job, bytes: 1_000_000 })
      this.step({ type: 'resumeJob', job })
    }
    this.step({ type: 'flush', job: null })
    this.drain()
    this.step({ type: 'replay', items: [...this.core.quarantined.keys()] })
    this.drain()
    const counts = this.core.counts()
    for (const tier of Object.values(counts.queue))
      check(tier.items + tier.tokens === 0, 'I4: tiers')
    check(counts.cleanup.models.length === 0, 'I4: cleanup goes on')
  }

  private drain(): void {
    for (let round = 0; this.shadow.hasWork(); round++) {
      if (round === 2000) check(false, `I4: ${text(this.core.counts())}`)
      for (const one of [...this.shadow.consumers.values()]) this.workers.work(one)
      if (this.shadow.hasWork()) this.pass(round < 10 ? 50 : 400)
    }
  }

  /** Of all items. */
  private models(): Set<number> {
    return new Set([...this.shadow.items.values()].map((item) => item.model))
  }

  private cancel(job: number, mask: number): void {
    const some = [...this.shadow.items.values()].filter(
      (item, at) => item.job === job && !item.durable && isIn(mask, at),
    )
    const ids = some.map((item) => new TextEncoder().encode(item.id))
    const { slots, numbers } = this.core.find(job, ids)
    this.step({ type: 'cancel', slots, numbers })
    for (const item of some) check(item.state === 'settled', `S35: ${item.id} was not cancelled`)
  }
}
