// The engine: the one place where events meet the core and its effects are carried out. It owns the
// timer and the dispatch loop; nothing else calls `core.step`.

import type {
  CoreCounts,
  CoreEvent,
  DeathCause,
  DispatchEffect,
  Effect,
  SubmitBlock,
} from '@fabric/core'
import { type EarlierResults, FabricError, type ResultsMessage } from '@fabric/protocol'
import type { Connection, ConsumerInfo, Registration } from './channels/connection.js'
import { NS_PER_MS } from './clock.js'
import { CoreTimer } from './core-timer.js'
import { Delivery } from './delivery.js'
import { Drains } from './drains.js'
import { Durability } from './durable/durability.js'
import { type Consumer, closingWords, type EngineParts, type LostItems } from './engine-parts.js'
import type { SubmitAnswer } from './http/ingest.js'
import type { Job } from './jobs.js'
import { MemoryKeeper } from './results/memory-keeper.js'
import { coreOutcomes } from './results/outcomes.js'
import { Settlement } from './settlement.js'
import type { Store } from './storage/store.js'

/** A dispatch burst gives way to sockets and HTTP after this time. */
const BURST_NS = 4 * NS_PER_MS

export class Engine {
  readonly consumers = new Map<number, Consumer>()
  readonly #drains = new Drains(this.consumers, () => this.counts())
  readonly #parts: EngineParts
  readonly #delivery: Delivery
  readonly #settlement: Settlement
  readonly disk: Durability | null
  readonly #later: CoreEvent[] = []
  #stepping = false
  #nextConsumer = 1
  #pumpScheduled = false
  #stopped = false
  readonly #timer: CoreTimer
  #message: ResultsMessage | null = null
  #submitted: Extract<Effect, { type: 'submitted' }> | null = null
  #admitted: Extract<Effect, { type: 'admitted' }> | null = null
  /** The disk has more to do than it may: no batch goes out. */
  #held = false
  /** Filled while a command's step runs. */
  #commandEffects: Effect[] | null = null
  #registered: Extract<Effect, { type: 'registered' | 'registerRefused' }> | null = null
  /** Told after every step while the broker drains. */
  onStep: (() => void) | null = null
  dispatching = true

  constructor(parts: EngineParts) {
    this.#parts = parts
    this.#delivery = new Delivery(parts, this.consumers)
    this.#timer = new CoreTimer(parts.clock, () => this.#guarded(() => this.#tick()))
    const { core, jobs, stats, store } = parts
    this.disk = store === null ? null : this.#durability(store)
    const keeper =
      this.disk ??
      new MemoryKeeper((job, bytes) =>
        this.#later.push({ type: 'resultsStored', job: job.number, bytes }),
      )
    this.#settlement = new Settlement(core.items, jobs, stats, keeper)
  }

  counts(): CoreCounts {
    return this.#parts.core.counts()
  }

  now(): number {
    return this.#parts.clock.now()
  }

  /** A command's step and whatever it made possible. Answers the effects of the step itself. */
  command(event: CoreEvent): readonly Effect[] {
    this.#commandEffects = []
    this.#step(event)
    const effects = this.#commandEffects
    this.#commandEffects = null
    this.#pump()
    return effects
  }

  /** A quarantined item of the job was accepted anew. */
  replayed(number: number): void {
    const job = this.#parts.jobs.byNumber(number)
    job.accepted += 1
    job.endedNs = null
    if (job.state !== 'ended') return
    job.state = 'flushed'
    this.disk?.reopen(job)
  }

  createJob(job: Job): void {
    // The core makes job 0 itself.
    const { number, weight, maxWaitMs } = job
    const wait = maxWaitMs === null ? {} : { maxWaitMs }
    if (number > 0) this.#step({ type: 'createJob', job: number, weight, ...wait })
  }

  deleteJob(job: Job): void {
    this.#step({ type: 'deleteJob', job: job.number })
    this.#parts.jobs.delete(job)
  }

  flush(job: Job): void {
    if (job.state === 'open') job.state = 'flushed'
    this.#step({ type: 'flush', job: job.number })
    this.#pump()
  }

  /** @param durable in disk mode: told when it is on disk. */
  submit(job: Job, block: SubmitBlock, durable: boolean): SubmitAnswer {
    const { core, spillAbove } = this.#parts
    const goesToDisk = durable || (spillAbove !== null && core.spills(spillAbove))
    if (this.disk !== null && goesToDisk) return this.#submitToDisk(this.disk, job, block)
    this.#step({ type: 'submit', block })
    const answer = this.#submitted
    if (answer === null) throw new Error('bug: the core did not answer a submission')
    this.#submitted = null
    this.#pumpSoon()
    const accepted = this.#parts.stats.recordSubmit(block, answer.codes)
    if (accepted > 0) this.#reopen(job, accepted)
    return { ...answer, durable: null }
  }

  #reopen(job: Job, accepted: number): void {
    const wasOpen = job.state === 'open'
    job.reopen(accepted)
    if (!wasOpen) this.disk?.reopen(job)
  }

  #submitToDisk(disk: Durability, job: Job, block: SubmitBlock): SubmitAnswer {
    this.#step({ type: 'admit', block })
    const admitted = this.#admitted
    if (admitted === null) throw new Error('bug: the core did not answer a durable submission')
    this.#admitted = null
    const { codes, retryAfterMs } = admitted
    const columns = { count: block.count, model: block.model.slice(0, block.count) }
    const kept = disk.keep(job, block, admitted)
    const durable = kept.then((last) => {
      this.#parts.stats.recordSubmit(columns, last)
      return last
    })
    return { codes, retryAfterMs, durable }
  }

  resultsRead(job: Job, bytes: number): void {
    if (bytes === 0 || job.deleted) return
    this.#step({ type: 'resultsRead', job: job.number, bytes })
    this.#pump()
  }

  /** @throws FabricError when the core refuses the contract. */
  register(connection: Connection, info: ConsumerInfo): Registration {
    const number = this.#nextConsumer++
    const { name, contract } = info
    this.#step({ type: 'register', consumer: number, name, contract })
    const answer = this.#registered
    this.#registered = null
    if (answer === null) throw new Error('bug: the core did not answer a registration')
    if (answer.type === 'registerRefused')
      throw FabricError.fromBody(answer as Parameters<typeof FabricError.fromBody>[0])
    this.consumers.set(number, { ...info, number, connection, registeredNs: this.now() })
    return { consumer: number, warnings: answer.warnings }
  }

  /** The consumer's channel stands: batches may go to it. */
  ready(consumer: number, warnings: readonly string[]): void {
    this.#parts.story.registered(this.consumers.get(consumer)!, warnings)
    this.#pump()
  }

  renew(consumer: number): void {
    this.#forward({ type: 'renew', consumer })
  }

  taken(consumer: number, batch: number): void {
    this.#forward({ type: 'taken', consumer, batch })
  }

  drain(consumer: number): void {
    this.#forward({ type: 'drain', consumer })
  }

  /** An operator's wish. @throws FabricError FABRIC_NOT_FOUND */
  drainByName(name: string): void {
    const { number } = this.#drains.begin(name)
    this.drain(number)
    this.#drains.check(number)
  }

  room(consumer: number, hasRoom: boolean): void {
    this.#forward({ type: 'room', consumer, hasRoom })
  }

  results(consumer: number, message: ResultsMessage): void {
    const { batch, brokerLife, index } = message
    const outcome = coreOutcomes(message)
    this.#message = message
    this.#forward({ type: 'results', consumer, brokerLife, batch, index, outcome })
    this.#message = null
  }

  /** Of batches that an earlier life gave out (S26). */
  earlierResults(consumer: number, message: EarlierResults): void {
    if (this.disk === null) this.results(consumer, message.results)
    else this.disk.earlierResults.take(consumer, message)
  }

  disconnect(consumer: number, cause: DeathCause): void {
    if (!this.consumers.has(consumer)) return
    this.#step({ type: 'disconnect', consumer, cause })
    this.consumers.delete(consumer)
    this.#drains.gone(consumer)
    this.#pump()
  }

  /** Items on disk were found damaged. */
  lost({ job, model, paddedLength, items, tokens }: LostItems): void {
    this.#step({ type: 'lost', job, model, paddedLength, items, tokens })
  }

  stop(): void {
    this.#stopped = true
    this.disk?.loads.close()
    this.#timer.clear()
  }

  /** An event of a registered consumer, then whatever it made possible. */
  #forward(event: CoreEvent & { readonly consumer: number }): void {
    if (!this.consumers.has(event.consumer)) return
    this.#step(event)
    if (event.type !== 'renew') this.#pump()
    else this.#armTimer()
  }

  /** One event and all that follows from its effects. Within another step it waits its turn. */
  #step(event: CoreEvent): void {
    if (this.#stepping) {
      this.#later.push(event)
      return
    }
    this.#stepping = true
    try {
      this.#apply(this.#parts.core.step(event, this.now()))
      for (let next = this.#later.shift(); next !== undefined; next = this.#later.shift())
        this.#apply(this.#parts.core.step(next, this.now()))
    } catch (error) {
      this.#parts.onBug(error)
      throw error
    } finally {
      this.#stepping = false
    }
    this.onStep?.()
  }

  /** Dispatches until the core has nothing to give, or the burst has lasted long enough. */
  #pump(): void {
    if (this.#stepping || this.#stopped) return
    const until = this.now() + BURST_NS
    while (this.dispatching && !this.#held) {
      const startedNs = this.now()
      if (startedNs > until) {
        this.#pumpSoon()
        break
      }
      if (!this.#dispatchOne(startedNs)) break
    }
    this.#armTimer()
  }

  /** @returns whether a batch was decided. */
  #dispatchOne(startedNs: number): boolean {
    this.#stepping = true
    let dispatched: DispatchEffect | null = null
    try {
      const effects = this.#parts.core.step({ type: 'dispatch' }, startedNs)
      for (const effect of effects) {
        if (effect.type !== 'dispatch') continue
        dispatched = effect
        this.#delivery.deliver(effect, startedNs)
      }
      this.#apply(effects)
    } finally {
      this.#stepping = false
    }
    for (let next = this.#later.shift(); next !== undefined; next = this.#later.shift())
      this.#step(next)
    return dispatched !== null
  }

  #apply(effects: readonly Effect[]): void {
    const { story, jobs } = this.#parts
    for (const effect of effects) {
      this.#commandEffects?.push(effect)
      switch (effect.type) {
        case 'submitted':
          this.#submitted = effect
          break
        case 'admitted':
          this.#admitted = effect
          break
        case 'load':
          this.disk?.loads.load(effect)
          break
        case 'endedOnDisk':
          this.disk?.earlyEnds.end(effect)
          break
        case 'reopened':
          this.#reopen(jobs.byNumber(effect.job), 0)
          break
        case 'registered':
        case 'registerRefused':
          this.#registered = effect
          break
        case 'settle':
          this.#settlement.apply(effect, effect.batch === null ? null : this.#message)
          break
        case 'batchDone':
          this.#drains.check(effect.consumer)
          break
        case 'close':
          this.#closeConsumer(effect.consumer, effect.cause)
          break
        case 'jobEnded':
          if (this.disk === null) this.#endJob(jobs.byNumber(effect.job))
          else this.disk.settlements.end(jobs.byNumber(effect.job))
          break
        default:
          story.tell(effect, this.consumers)
      }
    }
  }

  #durability(store: Store): Durability {
    const { core, jobs, stats, story, clock, dataDir } = this.#parts
    const run = (event: CoreEvent) => {
      if (this.#stopped) return
      this.#guarded(() => {
        this.#step(event)
        this.#pump()
      })
    }
    const hold = (waits: boolean) => {
      if (waits === this.#held) return
      this.#held = waits
      if (!waits) this.#pumpSoon()
    }
    const host = { store, jobs, stats, story, clock, quarantined: core.quarantined, run, hold }
    const settleEarlier = (message: ResultsMessage, event: CoreEvent) => {
      this.#message = message
      run(event)
      this.#message = null
    }
    return new Durability(host, core.items, (job) => this.#endJob(job), settleEarlier, dataDir)
  }

  #endJob(job: Job): void {
    job.state = 'ended'
    job.endedNs = this.now()
    job.wake()
    this.#parts.story.jobEnded(job, this.now())
  }

  #closeConsumer(number: number, cause: DeathCause): void {
    const consumer = this.consumers.get(number)
    if (consumer === undefined) return
    consumer.connection.fail(new FabricError('FABRIC_LEASE_EXPIRED', closingWords(cause)), cause)
  }

  #pumpSoon(): void {
    if (this.#pumpScheduled) return
    this.#pumpScheduled = true
    setImmediate(() => {
      this.#pumpScheduled = false
      this.#guarded(() => this.#pump())
    })
  }

  #armTimer(): void {
    if (!this.#stopped) this.#timer.set(this.#parts.core.nextTimerAt())
  }

  #tick(): void {
    this.#step({ type: 'tick' })
    this.#pump()
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#parts.onBug(error)
    }
  }
}
