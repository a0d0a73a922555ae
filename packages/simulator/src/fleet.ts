// The simulated consumers: they register, take, work, report, fall silent, die and come again.
import { type Agenda, COMPLETION, DEATH, LISTED } from './agenda.js'
import type { SimulatedBatch } from './batch.js'
import { SimulatedConsumer } from './consumer.js'
import { contractFor, type UsualContract } from './contract.js'
import type { ConsumerData } from './scenario/schema.js'
import type { Fleet, Shell } from './shell.js'

const NS_PER_MS = 1_000_000
/** Renewals come well before the core begins to doubt, at a third of the lease. */
const RENEWALS_PER_LEASE = 4

export class Consumers implements Fleet {
  /** By name, in the order in which they first came. */
  readonly byName = new Map<string, SimulatedConsumer>()
  /** Those with something new in their channel, or newly free. */
  readonly #takers = new Set<SimulatedConsumer>()
  #lastNumber = 0
  readonly #renewEveryNs: number

  constructor(
    private readonly shell: Shell,
    private readonly agenda: Agenda,
    private readonly usual: UsualContract,
    leaseTimeoutMs: number,
  ) {
    this.#renewEveryNs = Math.floor((leaseTimeoutMs * NS_PER_MS) / RENEWALS_PER_LEASE)
  }

  /** A silent one whose connection still stands: its death is to come. */
  get isDeathToCome(): boolean {
    for (const one of this.byName.values()) {
      if (one.state === 'stopped' && one.number >= 0) return true
    }
    return false
  }

  get #now(): number {
    return this.shell.nowNs
  }

  // --- coming and going

  /** One that lives under this name is gone first: its process was replaced. */
  register(data: ConsumerData): void {
    const before = this.byName.get(data.name)
    if (before !== undefined) {
      this.die(before)
      if (before.respawn !== null) before.respawn.cancelled = true
    }
    const contract = contractFor(data, this.usual)
    const times = this.shell.tally.times(contract.model)
    const consumer = new SimulatedConsumer(data, contract, times, before)
    this.byName.set(data.name, consumer)
    consumer.state = 'running'
    this.#connect(consumer)
    if (consumer.number < 0) consumer.state = 'dead'
    else consumer.time.arrive(this.#now)
  }

  #connect(consumer: SimulatedConsumer): void {
    const { name, contract } = consumer
    consumer.number = ++this.#lastNumber
    consumer.heardAtNs = this.#now
    consumer.lastPaddedLength = 0
    this.shell.life.consumers.set(consumer.number, consumer)
    const effects = this.shell.step({ type: 'register', consumer: consumer.number, name, contract })
    if (effects.some(({ type }) => type === 'registerRefused')) consumer.number = -1
    else this.shell.tally.register(contract)
  }

  /** Its process ends: the connection closes, what it held is the broker's again. */
  die(consumer: SimulatedConsumer): void {
    if (consumer.state === 'dead') return
    this.#breakOff(consumer)
    consumer.state = 'dead'
    consumer.channel.length = 0
    consumer.inFlight.length = 0
    consumer.frozenNs = -1
    const { number, data } = consumer
    consumer.number = -1
    if (number >= 0) {
      this.shell.step({ type: 'disconnect', consumer: number, cause: 'connection_closed' })
    }
    if (data.respawnMs === undefined) return
    const at = this.#now + data.respawnMs * NS_PER_MS
    consumer.respawn = this.agenda.plan(at, LISTED, () => this.register(data))
  }

  /**
   * The core gave it up and closed its connection. One that runs connects anew, as a client does; one
   * that is frozen knows of it when it goes on.
   */
  closed(consumer: SimulatedConsumer): void {
    this.#lose(consumer)
    if (consumer.state !== 'running' || consumer.draining) return
    this.agenda.plan(this.#now, LISTED, () => {
      const runs = consumer.state === 'running' && !consumer.draining
      if (runs && consumer.number < 0) this.#connect(consumer)
    })
  }

  #lose(consumer: SimulatedConsumer): void {
    consumer.number = -1
    consumer.channel.length = 0
    consumer.inFlight.length = Math.min(1, consumer.inFlight.length)
  }

  stop(consumer: SimulatedConsumer): void {
    if (consumer.state !== 'running') return
    const { completion } = consumer
    consumer.frozenNs = completion === null ? -1 : completion.atNs - this.#now
    this.#breakOff(consumer)
    consumer.state = 'stopped'
  }

  /** Goes on where it was frozen. A result of a lease it has lost is late. */
  cont(consumer: SimulatedConsumer): void {
    if (consumer.state !== 'stopped') return
    consumer.state = 'running'
    if (consumer.number >= 0) this.#renew(consumer)
    else if (!consumer.draining) this.#connect(consumer)
    if (!consumer.draining) consumer.time.arrive(this.#now)
    if (consumer.frozenNs >= 0) this.#work(consumer, consumer.frozenNs)
    consumer.frozenNs = -1
    this.#takers.add(consumer)
  }

  drain(consumer: SimulatedConsumer): void {
    if (consumer.state === 'dead' || consumer.draining) return
    consumer.draining = true
    consumer.channel.length = 0
    consumer.time.leave(this.#now, consumer.workingSinceNs)
    if (consumer.workingSinceNs >= 0) consumer.workingSinceNs = this.#now
    if (consumer.number >= 0) this.shell.step({ type: 'drain', consumer: consumer.number })
  }

  /** The broker has begun a new life: whoever runs connects anew. */
  reconnect(): void {
    for (const consumer of this.byName.values()) {
      this.#lose(consumer)
      if (consumer.state === 'running' && !consumer.draining) this.#connect(consumer)
    }
  }

  /** What it works on ends here, undone. */
  #breakOff(consumer: SimulatedConsumer): void {
    const { completion, inFlight, workingSinceNs } = consumer
    if (completion !== null) completion.cancelled = true
    if (workingSinceNs >= 0) this.#tellWork(consumer, inFlight[0], false)
    consumer.time.leave(this.#now, workingSinceNs)
    consumer.completion = null
    consumer.workingSinceNs = -1
  }

  // --- renewals

  renewAll(): void {
    for (const consumer of this.byName.values()) {
      const renews = consumer.state === 'running' && consumer.number >= 0
      if (renews && this.#now >= consumer.heardAtNs + this.#renewEveryNs) this.#renew(consumer)
    }
  }

  #renew(consumer: SimulatedConsumer): void {
    consumer.heardAtNs = this.#now
    this.shell.step({ type: 'renew', consumer: consumer.number })
  }

  // --- work

  dispatched(consumer: SimulatedConsumer, batch: SimulatedBatch): void {
    consumer.channel.push(batch)
    this.#takers.add(consumer)
  }

  /** Those that are free take what stands in their channels; false when none did. */
  takeAll(): boolean {
    let took = false
    for (const consumer of this.#takers) {
      while (consumer.canTake) {
        this.#take(consumer)
        took = true
      }
    }
    this.#takers.clear()
    return took
  }

  #take(consumer: SimulatedConsumer): void {
    const batch = consumer.channel.shift()!
    batch.nth = ++consumer.takenBatches
    consumer.inFlight.push(batch)
    this.shell.tally.take(batch, this.#now)
    this.shell.say({ type: 'taken', batch: batch.number })
    this.shell.step({ type: 'taken', consumer: consumer.number, batch: batch.coreNumber })
    if (batch.isPoison) {
      this.agenda.plan(this.#now, DEATH, () => {
        if (consumer.inFlight.includes(batch)) this.die(consumer)
      })
    } else if (consumer.completion === null) this.#work(consumer)
  }

  /** A batch that kills is never done, also when it takes no time: its death is planned. */
  #work(consumer: SimulatedConsumer, leftNs = consumer.serviceNs(consumer.inFlight[0])): void {
    if (consumer.inFlight[0].isPoison) return
    consumer.workingSinceNs = this.#now
    consumer.time.begin(this.#now)
    const at = this.#now + leftNs
    consumer.completion = this.agenda.plan(at, COMPLETION, () => this.#complete(consumer))
  }

  #complete(consumer: SimulatedConsumer): void {
    const { inFlight } = consumer
    const batch = inFlight[0]
    this.#tellWork(consumer, batch, true)
    inFlight.shift()
    consumer.time.end(consumer.workingSinceNs, this.#now)
    consumer.completion = null
    consumer.workingSinceNs = -1
    this.#report(consumer, batch)
    if (inFlight.length > 0) this.#work(consumer)
    this.#takers.add(consumer)
  }

  #report(consumer: SimulatedConsumer, batch: SimulatedBatch): void {
    this.shell.reporting = batch
    this.shell.step({
      type: 'results',
      consumer: batch.consumerNumber,
      brokerLife: batch.brokerLife,
      batch: batch.coreNumber,
      index: Uint32Array.from({ length: batch.size }, (_, i) => i),
      outcome: consumer.outcomes(batch, batch.nth),
    })
    this.shell.reporting = null
  }

  #tellWork(consumer: SimulatedConsumer, batch: SimulatedBatch, done: boolean): void {
    const { name, workingSinceNs } = consumer
    this.shell.options.observer?.worked(name, batch, workingSinceNs, this.#now, done)
  }
}
