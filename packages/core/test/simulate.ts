// Random workloads against the core: arrivals, deaths, late results, nacks, retries, flushes, drains,
// in an order that a seed decides. After every step the shadow checks the invariants.

import { Core } from '../src/core.js'
import {
  type Contract,
  type CoreConfig,
  type CoreEvent,
  type Effect,
  RESULT_COMPLETED,
  RESULT_FAILED,
  RESULT_NACK,
  RESULT_OUT_OF_MEMORY,
  RESULT_RETRY,
  type StoredItems,
  type SubmitBlock,
} from '../src/types.js'
import { asPublished, block, config, contract, LIFE, MS } from './helpers.js'
import { ModelStore } from './model-store.js'
import { Random } from './random.js'
import { check, Shadow, type ShadowBatch, type ShadowConsumer, type ShadowItem } from './shadow.js'

export interface Log {
  /** Events with their times, and effects, as text: what two runs are compared by. */
  readonly events: string[]
  readonly effects: string[]
}

type LoadEffect = Extract<Effect, { type: 'load' }>

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
  readonly config: CoreConfig
  private readonly random: Random
  private now = 0
  private nextConsumer = 1
  private nextJob = 1
  private nextItem = 0
  private readonly models: number
  private readonly longest: number
  private readonly poisonShare: number
  /** Padded tokens above which a batch is too much for every consumer (S28). */
  private readonly memoryTokens: number
  readonly log: Log = { events: [], effects: [] }

  constructor(
    seed: number,
    private readonly logs = false,
  ) {
    const random = new Random(seed)
    this.random = random
    this.models = random.int(1, 3)
    this.longest = random.pick([8, 24, 64, 200])
    this.poisonShare = random.pick([0, 0, 0.005, 0.05])
    this.memoryTokens = random.pick([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 40, 200])
    const plain = random.chance(0.15)
    const onDisk = random.chance(0.4)
    this.store = onDisk ? new ModelStore() : null
    this.config = config({
      mode: onDisk ? 'disk' : 'memory',
      readAheadTokens: random.pick([0, 100, 10_000]),
      lengthClasses: random.pick([[], [], [16, 64], [20, 21, 40], [300]]),
      overtakeLimit: random.pick([0, 2, 10, 1000]),
      budgetRule: random.pick(['padded', 'padded', 'actual']),
      releaseThreshold: random.pick([null, 0, 100, 1000]),
      maxUnreadResultBytes: random.pick([1000, 1_000_000]),
      spanWaste: new Random(seed + 7919).pick([[0], [0.01, 0.04, 0.1], [0.05, 0.3], [0.5]]),
      cleanupIdleMs: random.pick([0, 1, 50]),
      cleanupMerge: random.chance(0.8),
      laneOrder: random.chance(0.3) ? 'affinity' : 'round-robin',
      affinityRun: random.pick([1, 2, 16]),
      channelDepth: random.int(1, 3),
      leaseTimeoutMs: random.pick([300, 3000]),
      leaseMaxMs: random.pick([1000, 60_000]),
      laneIdleMs: random.pick([1, 100, 30_000]),
      gateMaxHoldMs: random.pick([0, 500, 30_000]),
      maxQueuedItems: random.pick([40, 1000]),
      maxQueuedTokens: random.pick([2000, 100_000]),
      maxAttempts: random.int(1, 4),
      maxDeliveries: random.pick([2, 6, 20, 20]),
      poisonDeaths: random.pick([1, 2, 2, 3]),
      maxQuarantinedItems: random.pick([1, 1000]),
      resultsTtlMs: random.pick([200, 100_000]),
      hashSeed: seed,
      // A job below the threshold is held for ever by the plain gate, so it gets none.
      ...(plain ? { ...asPublished, releaseThreshold: 0 } : {}),
    })
    this.core = new Core(this.config)
    this.shadow = new Shadow(this.core, this.config)
  }

  run(steps: number): void {
    for (let jobs = this.random.int(0, 3); jobs > 0; jobs--) this.createJob()
    for (let i = 0; i < steps; i++) this.act()
    this.finish()
  }

  private step(event: CoreEvent, submitted: readonly ShadowItem[] = []): void {
    this.one(event, submitted)
    for (;;) {
      while (this.one({ type: 'dispatch' }).some((effect) => effect.type === 'dispatch'));
      if (this.loads.length === 0) break
      // A slow disk: what is ready may wait for it, the counts hold all the same.
      if (this.random.chance(0.1)) {
        this.shadow.checkCounts()
        return
      }
      this.answerLoad(this.loads.shift()!)
    }
    this.shadow.checkAll(this.now)
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
    if (this.store !== null) this.keep(this.store, event, effects)
    return effects
  }

  /** What a shell does with the store. */
  private keep(store: ModelStore, event: CoreEvent, effects: readonly Effect[]): void {
    const { items } = this.core
    if (event.type === 'createJob') store.createJob(event.job, event.weight)
    if (event.type === 'flush') {
      for (const [id, job] of store.jobs)
        if (event.job === null || event.job === id) job.flushed = true
    }
    for (const effect of effects) {
      if (effect.type === 'load') this.loads.push(effect)
      if (effect.type === 'lost') check(false, `I1: ${effect.items} items are lost`)
      if (effect.type === 'jobEnded') store.jobs.get(effect.job)!.ended = true
      if (effect.type === 'reopened') store.jobs.get(effect.job)!.flushed = false
      if (effect.type === 'submitted' && effect.accepted > 0)
        store.jobs.get(effect.job)!.flushed = false
      if (effect.type !== 'settle') continue
      effect.items.forEach((slot, i) => {
        store.settle(items.sequence(slot), items.job(slot), effect.status[i])
      })
    }
    if (event.type === 'deleteJob') store.deleteJob(event.job)
  }

  private act(): void {
    const { random } = this
    const what = random.int(0, 99)
    if (this.appends.length > 0 && random.chance(0.3)) this.tellStored()
    else if (what < 30) this.submit()
    else if (what < 60) this.consume()
    else if (what < 80) this.pass(random.pick([0.1, 1, 20, 200]))
    else if (what < 86) this.register()
    else if (what < 89) this.lose()
    else if (what < 92) this.late()
    else if (what < 94) this.flush()
    else if (what < 95) this.createJob()
    else if (what < 96) this.deleteJob()
    else if (what < 97 && this.store !== null) this.restart(this.store)
    else this.disturb()
  }

  private createJob(): void {
    const weight = this.random.pick([1, 1, 2, 7])
    this.step({ type: 'createJob', job: this.nextJob++, weight })
  }

  private submit(): void {
    const { random } = this
    const job = random.pick([...this.shadow.flushed.keys()])
    const length = () => Math.max(1, Math.ceil(this.longest * random.next() ** 2))
    const model = random.int(1, this.models)
    const withDeadlines = random.chance(0.2)
    const specs = Array.from({ length: random.int(1, 30) }, () => ({
      // What the store keeps of an item has no deadline in it.
      deadlineMs:
        this.store === null && withDeadlines && random.chance(0.5) ? random.int(1, 400) : 0,
      id: random.chance(0.03) ? `m${random.int(0, this.nextItem)}` : `m${this.nextItem++}`,
      length: length(),
      model: random.chance(0.9) ? model : random.int(1, this.models),
    }))
    const items = specs.map((spec) => ({
      ...spec,
      job,
      durable: this.store !== null,
      state: 'queued' as const,
      batch: 0,
      returns: 0,
      dueAt: 0,
      deadlineAt:
        spec.deadlineMs === 0 ? Number.POSITIVE_INFINITY : this.now + spec.deadlineMs * MS,
      poison: random.chance(this.poisonShare),
      suspicion: null,
    }))
    if (this.store === null || random.chance(0.2)) {
      const inMemory = items.map((item) => ({ ...item, durable: false }))
      this.step({ type: 'submit', block: block(specs, job) }, inMemory)
      return
    }
    const event: CoreEvent = { type: 'admit', block: block(specs, job) }
    for (const effect of this.one(event, items)) {
      if (effect.type === 'admitted') this.append(this.store, event.block, items, effect)
    }
    if (random.chance(0.5)) this.tellStored()
  }

  /** The disk is quick or slow; it may be full. */
  private append(
    store: ModelStore,
    { job, model, lengths }: SubmitBlock,
    items: readonly ShadowItem[],
    { sequences }: Extract<Effect, { type: 'admitted' }>,
  ): void {
    const numbered = items.map((item, i) => ({ ...item, sequence: sequences[i] }))
    const full = this.random.chance(0.1)
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
    this.shadow.restart(this.core, new Set(store.items.keys()))
    for (const [id, { flushed }] of store.jobs) this.shadow.flushed.set(id, flushed)
    const { lastSequence } = this.shadow
    this.step({ type: 'restore', lastSequence, jobs: store.restored() })
  }

  private register(): void {
    const { random } = this
    if (this.shadow.consumers.size >= 6) return
    const made: Contract = contract({
      model: random.int(1, this.models),
      batchSize: random.pick([1, 3, 8, 64]),
      tokens: random.pick([16, 64, 200, 1024]),
      inputLength: random.pick([32, 512, 512]),
      roundTo: random.pick([1, 8, 8, 16]),
      layout: random.pick(['padded', 'padded', 'ragged']),
      maxInFlight: random.int(1, 2),
    })
    const consumer = this.nextConsumer++
    this.step({ type: 'register', consumer, name: `gpu${consumer % 4}`, contract: made })
  }

  /** Takes the first batch of the channel; a poison item in it kills the consumer (S27). */
  private takeOne(consumer: ShadowConsumer): void {
    const [batch] = consumer.channel
    this.step({ type: 'taken', consumer: consumer.id, batch: batch.number })
    const kills = batch.items.some(
      (item) => item.poison && item.state === 'leased' && item.batch === batch.number,
    )
    if (!kills) return
    this.step({ type: 'disconnect', consumer: consumer.id, cause: 'connection_closed' })
    const { name, contract } = consumer
    this.step({ type: 'register', consumer: this.nextConsumer++, name, contract })
  }

  private consumer(): ShadowConsumer | null {
    const consumers = [...this.shadow.consumers.values()].filter((one) => !one.silent)
    return consumers.length === 0 ? null : this.random.pick(consumers)
  }

  /** A consumer takes a batch or reports on one that it has. */
  private consume(): void {
    const consumer = this.consumer()
    if (consumer === null) return
    const { channel, inFlight, contract } = consumer
    if (channel.length > 0 && inFlight.length < contract.maxInFlight && this.random.chance(0.6)) {
      this.takeOne(consumer)
      return
    }
    if (inFlight.length > 0) this.report(consumer.id, this.random.pick(inFlight), 0.7)
  }

  private report(consumer: number, batch: ShadowBatch, share: number): void {
    const { random } = this
    const whole = random.chance(share)
    const left = batch.items.map((_, index) => index).filter((i) => !batch.reported.has(i))
    const chosen = whole ? left : left.filter(() => random.chance(0.5))
    if (random.chance(0.05)) chosen.push(0, batch.items.length + 3)
    const bad = random.chance(0.2)
    const tooMuch = this.isTooMuch(batch)
    const outcome = chosen.map(() =>
      tooMuch
        ? RESULT_OUT_OF_MEMORY
        : bad
          ? random.pick([RESULT_FAILED, RESULT_RETRY, RESULT_NACK])
          : RESULT_COMPLETED,
    )
    this.step({
      type: 'results',
      consumer,
      brokerLife: LIFE,
      batch: batch.number,
      index: Uint32Array.from(chosen),
      outcome: Uint8Array.from(outcome),
    })
  }

  private lose(): void {
    const consumer = this.consumer()
    if (consumer === null) return
    if (this.random.chance(0.3)) consumer.silent = true
    else if (this.random.chance(0.4)) this.step({ type: 'drain', consumer: consumer.id })
    else this.step({ type: 'disconnect', consumer: consumer.id, cause: 'connection_closed' })
  }

  private late(): void {
    const { lost } = this.shadow
    if (lost.length > 0)
      this.report(this.random.int(0, this.nextConsumer), this.random.pick(lost), 0.5)
  }

  private flush(): void {
    const jobs = [...this.shadow.flushed.keys()]
    this.step({ type: 'flush', job: this.random.chance(0.5) ? null : this.random.pick(jobs) })
  }

  private deleteJob(): void {
    this.step({ type: 'deleteJob', job: this.random.pick([...this.shadow.flushed.keys()]) })
  }

  private disturb(): void {
    const consumer = this.consumer()
    const { random } = this
    const what = random.int(0, 8)
    const job = random.pick([...this.shadow.flushed.keys()])
    if (what === 3) this.step({ type: 'resultsStored', job, bytes: random.int(0, 900) })
    if (what === 4) this.step({ type: 'resultsRead', job, bytes: random.int(0, 900) })
    if (what === 5) this.step({ type: 'pauseJob', job })
    if (what === 6) this.step({ type: 'resumeJob', job })
    if (what === 7) this.cancel(job)
    if (what === 8) this.replay()
    if (consumer === null) return
    if (what === 0) this.step({ type: 'room', consumer: consumer.id, hasRoom: random.chance(0.7) })
    if (what === 1) this.step({ type: 'taken', consumer: consumer.id, batch: random.int(1, 50) })
    if (what === 2) {
      this.step({
        type: 'results',
        consumer: consumer.id,
        brokerLife: random.chance(0.5) ? 1n : LIFE,
        batch: 1_000_000,
        index: Uint32Array.of(0),
        outcome: Uint8Array.of(0),
      })
    }
  }

  /** Time goes on; consumers that are not silent renew in time, timers fire at theirs. */
  private pass(ms: number): void {
    const end = this.now + Math.floor(ms * MS)
    while (this.core.nextTimerAt() <= end) {
      this.now = Math.max(this.now, this.core.nextTimerAt())
      for (const one of [...this.shadow.consumers.values()]) {
        if (!one.silent && this.now >= one.heardAt + (this.config.leaseTimeoutMs * MS) / 4) {
          this.step({ type: 'renew', consumer: one.id })
        }
      }
      this.step({ type: 'tick' })
    }
    this.now = end
    for (const one of [...this.shadow.consumers.values()]) {
      if (!one.silent) this.step({ type: 'renew', consumer: one.id })
    }
  }

  /** I4: input has ended, every served model's work drains, every gauge is 0. */
  private finish(): void {
    for (const one of [...this.shadow.consumers.values()]) {
      if (!one.hasRoom) this.step({ type: 'room', consumer: one.id, hasRoom: true })
    }
    for (let model = 1; model <= this.models; model++) {
      const consumer = this.nextConsumer++
      const made = contract({ model, tokens: 64 })
      this.step({ type: 'register', consumer, name: 'last', contract: made })
    }
    for (const job of this.shadow.flushed.keys()) {
      this.step({ type: 'resultsRead', job, bytes: 1_000_000 })
      this.step({ type: 'resumeJob', job })
    }
    while (this.appends.length > 0) this.tellStored()
    this.step({ type: 'flush', job: null })
    for (let round = 0; this.core.counts().waiting.items + this.core.counts().leased > 0; round++) {
      check(round < 2000, `I4: ${text(this.core.counts())}`)
      for (const one of [...this.shadow.consumers.values()]) this.work(one)
      if (this.core.counts().waiting.items + this.core.counts().leased > 0) this.pass(50)
    }
    const counts = this.core.counts()
    for (const tier of Object.values(counts.queue))
      check(tier.items + tier.tokens === 0, 'I4: tiers')
    check(counts.cleanup.models.length === 0, 'I4: cleanup goes on')
  }

  private work(consumer: ShadowConsumer): void {
    if (consumer.silent) return
    const { channel, inFlight, contract } = consumer
    while (channel.length > 0 && inFlight.length < contract.maxInFlight) {
      this.takeOne(consumer)
      if (!this.shadow.consumers.has(consumer.id)) return
    }
    for (const batch of [...inFlight]) this.complete(consumer, batch)
  }

  private cancel(job: number): void {
    const some = [...this.shadow.items.values()].filter(
      (item) => item.job === job && !item.durable && this.random.chance(0.1),
    )
    const ids = some.map((item) => new TextEncoder().encode(item.id))
    const { slots, numbers } = this.core.find(job, ids)
    this.step({ type: 'cancel', slots, numbers })
    for (const item of some) check(item.state === 'settled', `S35: ${item.id} was not cancelled`)
  }

  private replay(): void {
    const numbers = [...this.core.quarantined.keys()].filter(() => this.random.chance(0.5))
    this.step({ type: this.random.chance(0.7) ? 'replay' : 'discard', items: numbers })
  }

  private isTooMuch({ items }: ShadowBatch): boolean {
    const longest = Math.max(...items.map((item) => item.length))
    return items.length > 1 && longest * items.length > this.memoryTokens
  }

  private complete(consumer: ShadowConsumer, batch: ShadowBatch): void {
    const left = batch.items.map((_, index) => index).filter((i) => !batch.reported.has(i))
    this.step({
      type: 'results',
      consumer: consumer.id,
      brokerLife: LIFE,
      batch: batch.number,
      index: Uint32Array.from(left),
      outcome: new Uint8Array(left.length).fill(this.isTooMuch(batch) ? RESULT_OUT_OF_MEMORY : 0),
    })
  }
}
