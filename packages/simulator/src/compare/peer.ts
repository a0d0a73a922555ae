// The same workload under another rule: arrivals, bounded queues and consumers with their service
// times, and nothing of what the core does.
import type { Contract } from '@fabric/core'
import { Agenda, COMPLETION, type Entry, LISTED } from '../agenda.js'
import { contractFor, usualContract } from '../contract.js'
import { IdleTime, type ModelTimes } from '../idle-time.js'
import type { Scenario } from '../scenario/read.js'
import type { ConsumerData, EventData } from '../scenario/schema.js'
import { openStreams, type Source, toNs } from '../sources.js'
import { Fifo } from './fifo.js'
import { type Figures, FigureTally } from './figures.js'
import { type PeerBatch, type Policy, padTo } from './policies.js'

interface PeerConsumer {
  readonly data: ConsumerData
  readonly contract: Contract
  readonly time: IdleTime
  readonly queue: ModelQueue
  isBusy: boolean
  lastPadded: number
}

interface ModelQueue {
  readonly fifo: Fifo
  readonly policy: Policy
  readonly times: ModelTimes
}

interface Arrival {
  readonly source: Source
  readonly waits: boolean
  readonly entry: Entry
}

export class Peer {
  #now = 0
  readonly #agenda = new Agenda()
  readonly #queues = new Map<number, ModelQueue>()
  readonly #consumers: PeerConsumer[] = []
  #held: Arrival[] = []
  readonly #tally: FigureTally

  constructor(
    private readonly rule: string,
    private readonly scenario: Scenario,
    private readonly makePolicy: () => Policy,
    tail: number,
  ) {
    this.#tally = new FigureTally(tail)
    for (const data of scenario.consumers) this.#agenda.plan(0, LISTED, () => this.#register(data))
    const streams = openStreams(scenario)
    scenario.events.forEach((event, i) => {
      const stream = streams.get(i)
      if (stream !== undefined) this.#planStream(event, stream.source)
      else this.#agenda.plan(toNs(event.atUs), LISTED, () => this.#act(event))
    })
  }

  /** One instant; false when nothing more can happen. */
  advance(): boolean {
    const at = this.#agenda.nextAtNs()
    if (at === Number.POSITIVE_INFINITY) return false
    this.#now = at
    do {
      for (let due = this.#agenda.takeDue(at); due !== null; due = this.#agenda.takeDue(at)) {
        due.act()
      }
      for (const consumer of this.#consumers) if (!consumer.isBusy) this.#serve(consumer)
    } while (this.#askHeld())
    return true
  }

  figures(): Figures {
    return this.#tally.figures(
      this.rule,
      this.#consumers.map(({ time }) => time),
    )
  }

  #act({ submit, register }: EventData): void {
    for (const { model, length } of submit ?? []) this.#accept(model, length)
    if (register !== undefined) this.#register(register)
  }

  #register(data: ConsumerData): void {
    const queue = this.#queueOf(data.model)
    const time = new IdleTime(queue.times)
    time.arrive(this.#now)
    const contract = contractFor(data, usualContract(this.scenario.rules))
    this.#consumers.push({ data, contract, time, queue, isBusy: false, lastPadded: 0 })
  }

  #queueOf(model: number): ModelQueue {
    let queue = this.#queues.get(model)
    if (queue === undefined) {
      const times = { firstDispatchNs: -1, lastInputNs: -1 }
      queue = { fifo: new Fifo(), policy: this.makePolicy(), times }
      this.#queues.set(model, queue)
    }
    return queue
  }

  /** False when there is no room. What finds none in an empty queue either is refused, as by ours. */
  #accept(model: number, length: number): boolean {
    const { maxQueuedItems, maxQueuedTokens } = this.scenario.rules
    if (length > maxQueuedTokens) return true
    let items = 0
    let tokens = 0
    for (const { fifo, policy } of this.#queues.values()) {
      items += fifo.count + policy.heldItems
      tokens += fifo.tokens + policy.heldTokens
    }
    if (items >= maxQueuedItems || tokens + length > maxQueuedTokens) return false
    const queue = this.#queueOf(model)
    queue.fifo.push(length, this.#now)
    queue.times.lastInputNs = this.#now
    this.#tally.items++
    return true
  }

  #planStream(event: EventData, source: Source): void {
    const waits = ({ ...event, ...event.submitMany }.onFull ?? 'wait') === 'wait'
    const entry: Entry = {
      atNs: source.nextAtNs,
      phase: LISTED,
      order: 0,
      act: () => this.#pull(arrival),
      cancelled: false,
    }
    const arrival: Arrival = { source, waits, entry }
    if (entry.atNs < Number.POSITIVE_INFINITY) this.#agenda.add(entry)
  }

  #pull(arrival: Arrival): void {
    const { source, entry, waits } = arrival
    while (source.nextAtNs <= this.#now) {
      if (!this.#accept(source.model, source.length) && waits) {
        this.#held.push(arrival)
        return
      }
      source.advance()
    }
    entry.atNs = source.nextAtNs
    if (entry.atNs < Number.POSITIVE_INFINITY) this.#agenda.add(entry)
  }

  #askHeld(): boolean {
    if (this.#held.length === 0) return false
    const before = this.#tally.items
    const held = this.#held
    this.#held = []
    for (const arrival of held) this.#pull(arrival)
    return this.#tally.items > before
  }

  #serve(consumer: PeerConsumer): void {
    const { queue, contract, time, data } = consumer
    const batch = queue.policy.next(queue.fifo, contract)
    if (batch === null) return
    if (queue.times.firstDispatchNs < 0) queue.times.firstDispatchNs = this.#now
    const padded = this.#count(consumer, batch)
    time.begin(this.#now)
    consumer.isBusy = true
    const from = this.#now
    const { fixedUs = 0, perPaddedTokenNs = 0 } = data.service ?? {}
    const end = from + Math.floor(fixedUs * 1000 + perPaddedTokenNs * padded)
    this.#agenda.plan(end, COMPLETION, () => {
      time.end(from, this.#now)
      consumer.isBusy = false
      this.#tally.ended += batch.size
      this.#tally.lastEndNs = this.#now
    })
  }

  /** Answers the padded tokens. */
  #count(consumer: PeerConsumer, batch: PeerBatch): number {
    const { contract, lastPadded } = consumer
    const { size, longest, actualTokens, acceptedNsSum } = batch
    const paddedLength = padTo(longest, contract.roundTo)
    const tally = this.#tally
    if (lastPadded > 0 && lastPadded !== paddedLength) tally.switches++
    consumer.lastPadded = paddedLength
    tally.takenItems += size
    tally.waitNs += size * this.#now - acceptedNsSum
    tally.batch((size * paddedLength) / contract.tokens, actualTokens, size * paddedLength)
    return size * paddedLength
  }
}
