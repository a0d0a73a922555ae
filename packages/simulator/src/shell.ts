// Where events meet the core and its effects are told: lines, tally, and whom they concern. It owns
// the clock and the lives of the broker; nothing else calls `core.step`.
import type { Core, CoreCounts, CoreEvent, DispatchEffect, Effect } from '@fabric/core'
import type { SimulatedBatch } from './batch.js'
import type { SimulatedConsumer } from './consumer.js'
import { Life } from './life.js'
import { contractOf, type Line, type LineBody } from './lines.js'
import { toRatio } from './report/ratios.js'
import { Tally } from './report/tally.js'
import type { Rules } from './scenario/config.js'
import { Shelf } from './shelf.js'

const NS_PER_US = 1000

/** Who looks on; nothing that it does changes the run. */
export interface Observer {
  dispatched(batch: SimulatedBatch, consumer: SimulatedConsumer, nowNs: number): void
  /** The consumer worked on the batch; `done` is false when it was stopped or killed over it. */
  worked(name: string, batch: SimulatedBatch, fromNs: number, toNs: number, done: boolean): void
  /** After an instant; counts cost time, so they are made when asked for. */
  instant(nowNs: number, counts: () => CoreCounts): void
  effect?(effect: Effect, nowNs: number): void
}

export interface ShellOptions {
  readonly onLine?: (line: Line) => void
  readonly observer?: Observer
}

/** What effects do to the consumers. */
export interface Fleet {
  dispatched(consumer: SimulatedConsumer, batch: SimulatedBatch): void
  /** The core holds it for dead and has closed its connection. */
  closed(consumer: SimulatedConsumer): void
}

type Handlers = {
  readonly [T in Effect['type']]?: (effect: Extract<Effect, { type: T }>) => void
}

export class Shell {
  nowNs = 0
  readonly tally: Tally
  life: Life
  /** Items that kill who takes them: job number and id. */
  readonly poison = new Set<string>()
  /** Lines, scripts or poison speak of items by name. */
  needsNames: boolean
  /** In disk mode: what outlives the broker. */
  readonly shelf: Shelf | null
  /** Something has left the queue since a held stream was last asked. */
  roomMade = false
  fleet: Fleet | null = null
  /** The batch whose results the running step brings: what `late` speaks of. */
  reporting: SimulatedBatch | null = null
  #lives = 1
  #steppedNs = 0
  #batches = 0

  constructor(
    private readonly rules: Rules,
    readonly options: ShellOptions,
  ) {
    this.tally = new Tally(rules)
    this.life = new Life(rules, this.#lives, 0)
    this.shelf = rules.mode === 'disk' ? new Shelf() : null
    this.#restore()
    this.needsNames = options.onLine !== undefined
  }

  get core(): Core {
    return this.life.core
  }

  /** The broker begins a new life. Its line comes first: what follows is of the new one. */
  restart(): void {
    const { waiting, leased, cleanup, models } = this.core.counts()
    const inCleanup = models.filter((model) => model.inCleanup).length
    const lost = waiting.items + leased - (this.shelf?.unsettled ?? 0)
    this.say({ type: 'restart', lost })
    // The core counts up to its last step.
    const ns = cleanup.ns + inCleanup * (this.nowNs - this.#steppedNs)
    this.tally.addCleanup({ ...cleanup, ns })
    this.life = new Life(this.rules, ++this.#lives, this.#batches)
    this.roomMade = true
    this.#restore()
  }

  step(event: CoreEvent): readonly Effect[] {
    this.#steppedNs = this.nowNs
    const effects = this.life.step(event, this.nowNs)
    for (const effect of effects) this.#carryOut(effect)
    return effects
  }

  /** Decides at most one batch; false when there is none to be had now. */
  dispatch(): boolean {
    const effects = this.step({ type: 'dispatch' })
    let goesOn = false
    for (const effect of effects) {
      if (effect.type === 'dispatch') goesOn = true
      if (effect.type !== 'load') continue
      const { job, model, paddedLength } = effect
      const items = this.shelf!.load(effect)
      this.step({ type: 'loaded', job, model, paddedLength, items })
      goesOn = true
    }
    return goesOn
  }

  /** Disk mode goes on where the last life ended. */
  #restore(): void {
    if (this.shelf === null) return
    const { lastSequence, jobs } = this.shelf.restored()
    for (const { job } of jobs) this.life.jobs.add(job)
    this.step({ type: 'restore', lastSequence, jobs })
  }

  say(line: LineBody): void {
    const { onLine } = this.options
    if (onLine === undefined) return
    const { type, ...rest } = line
    onLine({ type, atUs: Math.floor(this.nowNs / NS_PER_US), ...rest } as Line)
  }

  #carryOut(effect: Effect): void {
    const handler = this.#handlers[effect.type] as ((effect: Effect) => void) | undefined
    handler?.(effect)
    this.options.observer?.effect?.(effect, this.nowNs)
  }

  /** What no line speaks of and nobody here waits for is left out. */
  readonly #handlers: Handlers = {
    gate: ({ reason, heldNs }) => {
      this.tally.openGate(reason, heldNs)
      this.say({ type: 'gate', reason })
    },
    activate: ({ model, paddedLength }) => this.say({ type: 'activate', model, paddedLength }),
    registered: ({ consumer }) => {
      const { name, data } = this.#consumer(consumer)
      this.say({ type: 'register', consumer: name, contract: contractOf(data) })
    },
    registerRefused: ({ consumer, code }) => {
      this.say({ type: 'refuse', consumer: this.#consumer(consumer).name, code })
    },
    dispatch: (effect) => this.#dispatched(effect),
    settle: (effect) => this.#settled(effect),
    late: (effect) => this.#late(effect),
    dead: (effect) => {
      const consumer = this.#consumer(effect.consumer)
      this.say({ type: 'dead', consumer: consumer.name, cause: effect.cause })
      this.fleet!.closed(consumer)
    },
    reclaim: (effect) => this.#reclaimed(effect),
    reopened: ({ job }) => this.shelf?.reopen(job),
    jobEnded: ({ job }) => this.shelf?.end(job),
    quarantine: ({ slot }) => {
      if (this.options.onLine !== undefined) {
        this.say({ type: 'quarantine', item: this.life.nameOf(slot) })
      }
    },
    cleanup: ({ model, state }) => this.say({ type: 'cleanup', model, state }),
  }

  #consumer(number: number): SimulatedConsumer {
    return this.life.consumers.get(number)!
  }

  #line(coreBatch: number): number {
    return coreBatch + this.life.batchesBefore
  }

  #dispatched(effect: DispatchEffect): void {
    const consumer = this.#consumer(effect.consumer)
    const batch = this.#batchOf(effect)
    this.#batches = batch.number
    this.roomMade = true
    this.tally.dispatch(batch, consumer, this.nowNs)
    this.options.observer?.dispatched(batch, consumer, this.nowNs)
    if (this.options.onLine !== undefined) this.#sayDispatch(effect, batch, consumer)
    this.fleet!.dispatched(consumer, batch)
  }

  #batchOf(effect: DispatchEffect): SimulatedBatch {
    const { batch, consumer, model, size, paddedLength, actualTokens, budgetTokens } = effect
    const { fill, closedBy, normal, cleanup, items } = effect
    const names = this.needsNames ? this.life.namesOf(items) : null
    let acceptedAtNsSum = 0
    for (const slot of items) acceptedAtNsSum += this.core.items.acceptedAt(slot)
    return {
      coreNumber: batch,
      number: this.#line(batch),
      brokerLife: this.life.brokerLife,
      consumerNumber: consumer,
      model,
      size,
      paddedLength,
      actualTokens,
      budgetTokens,
      fill,
      closedBy,
      normal,
      cleanup,
      names,
      isPoison: this.#isPoison(items, names),
      acceptedAtNsSum,
      nth: 0,
    }
  }

  #isPoison(slots: Int32Array, names: readonly string[] | null): boolean {
    if (this.poison.size === 0 || names === null) return false
    return names.some((name, i) => this.poison.has(`${this.core.items.job(slots[i])}/${name}`))
  }

  #sayDispatch(effect: DispatchEffect, batch: SimulatedBatch, consumer: SimulatedConsumer): void {
    this.say({
      type: 'dispatch',
      batch: batch.number,
      consumer: consumer.name,
      model: effect.model,
      items: batch.names ?? [],
      paddedLength: effect.paddedLength,
      actualTokens: effect.actualTokens,
      budgetTokens: effect.budgetTokens,
      fill: toRatio(effect.fill),
      closedBy: effect.closedBy,
      source: effect.source,
      sources: { ...effect.sources },
      cleanup: effect.cleanup,
      normal: effect.normal,
      attempts: effect.attempt,
      group: effect.group,
    })
  }

  #settled(effect: Extract<Effect, { type: 'settle' }>): void {
    const { batch, consumer, items, status } = effect
    this.roomMade = true
    this.tally.settle(status, this.nowNs)
    if (this.shelf !== null) this.#settleOnShelf(this.shelf, effect)
    if (this.options.onLine === undefined) return
    this.say({
      type: 'settle',
      batch: batch === null ? null : this.#line(batch),
      consumer: consumer === null ? null : this.#consumer(consumer).name,
      results: this.life.namesOf(items).map((name, i) => [name, status[i]] as const),
    })
  }

  #settleOnShelf(shelf: Shelf, { items, status }: Extract<Effect, { type: 'settle' }>): void {
    const view = this.core.items
    items.forEach((slot, i) => {
      if (view.durable(slot)) shelf.settle(view.job(slot), view.sequence(slot), status[i])
    })
  }

  #late(effect: Extract<Effect, { type: 'late' }>): void {
    const names = this.reporting?.names
    if (names === null || names === undefined) return
    for (const place of effect.index) this.say({ type: 'late', item: names[place] })
  }

  #reclaimed(effect: Extract<Effect, { type: 'reclaim' }>): void {
    if (this.options.onLine === undefined) return
    this.say({
      type: 'reclaim',
      consumer: this.#consumer(effect.consumer).name,
      batches: effect.batches.map((batch) => this.#line(batch)),
      items: this.life.namesOf(effect.slots),
    })
  }
}
