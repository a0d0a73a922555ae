// The consumer: registers the contract, hands batches to a handler and settles what it made of them.
// Runs on the handler's thread; the connection has one of its own (connection/).
import { EventEmitter } from 'node:events'
import { type ErrorBody, FabricError, type Welcome } from '@fabric/protocol'
import type { Batch } from './batches/batch.js'
import { BatchFeed } from './batches/feed.js'
import { type BatchResults, ItemError } from './batches/results.js'
import { closeDescriptors } from './connection/descriptors.js'
import { Link } from './connection/link.js'
import type { Report } from './connection/messages.js'
import { type CheckedOptions, type ConsumerOptions, checkOptions } from './options.js'
import { withSignals } from './signals.js'

/** Returns one result per item; or settles the items by the batch's own methods and returns nothing. */
export type Handler = (batch: Batch) => BatchResults | undefined | Promise<BatchResults | undefined>

export interface RunOptions {
  /** Its abort drains the consumer. */
  readonly signal?: AbortSignal
  /** SIGTERM and SIGINT drain the consumer; a second one ends the process at once. Default false. */
  readonly handleSignals?: boolean
}

export interface ConsumerStatus {
  readonly state: 'new' | 'connecting' | 'registered' | 'draining' | 'ended'
  /** The broker's name for it: unique among those connected. */
  readonly name: string | null
  readonly transport: 'ring' | 'socket' | null
  /** Why this transport, in words. */
  readonly transportReason: string | null
  /** Of the ring's memory as it is mapped here. */
  readonly pageSizeBytes: number | null
  readonly inFlight: number
  /** Since construction. */
  readonly batches: number
  readonly items: number
}

export interface ConsumerEvents {
  registered: [Welcome]
  disconnected: [ErrorBody]
  settled: [Batch, number]
  drained: []
}

type ConnectedReport = Extract<Report, { type: 'connected' }>

export class Consumer extends EventEmitter<ConsumerEvents> {
  readonly #options: CheckedOptions
  readonly #feed: BatchFeed
  readonly #ended: Promise<void>
  #end!: { resolve(): void; reject(error: FabricError): void }
  #link: Link | null = null
  #state: ConsumerStatus['state'] = 'new'
  #welcome: Welcome | null = null
  #isConnected = false
  #draining: Promise<void> | null = null
  #hasSaidUnreachable = false
  #batches = 0
  #items = 0

  /** @throws FabricError FABRIC_CONTRACT_INVALID or FABRIC_CONFIG_INVALID, with the field's name */
  constructor(options: ConsumerOptions) {
    super()
    this.#options = checkOptions(options)
    this.#ended = new Promise((resolve, reject) => {
      this.#end = { resolve, reject }
    })
    this.#ended.catch(() => {}) // whoever awaits it hears of it; nobody has to
    this.#feed = new BatchFeed(this.#options.policy, {
      taken: (epoch, batch) => this.#link?.send({ type: 'taken', epoch, batch }),
      results: (...sent) => this.#sendResults(...sent),
      settled: (batch, tookMs) => this.#onSettled(batch, tookMs),
      broken: (epoch, error) => this.#link?.send({ type: 'reset', epoch, error }),
    })
  }

  get status(): ConsumerStatus {
    return {
      state: this.#state,
      name: this.#welcome?.name ?? null,
      transport: this.#welcome?.transport ?? null,
      transportReason: this.#welcome?.transportReason ?? null,
      pageSizeBytes: this.#feed.pageSizeBytes,
      inFlight: this.#feed.inFlight,
      batches: this.#batches,
      items: this.#items,
    }
  }

  /** Null until the broker has answered. */
  get transport(): 'ring' | 'socket' | null {
    return this.status.transport
  }

  /**
   * Connects, and calls `handler` with each batch until the consumer is drained.
   * @throws FabricError when the broker refuses the consumer for good, or cannot be reached and
   * `reconnect` or `connectTimeoutMs` says to give up
   */
  async run(handler: Handler, { signal, handleSignals = false }: RunOptions = {}): Promise<void> {
    if (typeof handler !== 'function')
      throw new TypeError('run needs a function that takes a batch')
    this.#start()
    const drain = () => void this.drain()
    if (signal?.aborted) drain()
    signal?.addEventListener('abort', drain, { once: true })
    const workers = Array.from({ length: this.#options.maxInFlight }, () => this.#work(handler))
    try {
      if (handleSignals) await withSignals(this.#options.logger, drain, this.#allOf(workers))
      else await this.#allOf(workers)
    } finally {
      signal?.removeEventListener('abort', drain)
    }
  }

  /**
   * Batches as they come. The next one is handed out when fewer than maxInFlight are unsettled. Leaving
   * the loop gives back what is unsettled and drains the consumer.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, void, undefined> {
    this.#start()
    const inHand = new Set<Batch>()
    try {
      for (let batch = await this.#feed.next(); batch !== null; batch = await this.#feed.next()) {
        for (const earlier of inHand) if (earlier.settled) inHand.delete(earlier)
        inHand.add(batch)
        yield batch
      }
      await this.#ended
    } finally {
      if (this.#draining === null) for (const batch of inHand) batch.nack()
      await this.drain()
    }
  }

  /** Takes nothing new, finishes what is in flight, says goodbye. Resolves when that is done. */
  drain(): Promise<void> {
    this.#draining ??= this.#drain()
    return this.#draining
  }

  async #drain(): Promise<void> {
    const { logger } = this.#options
    this.#feed.stop()
    if (this.#state === 'new') this.#finish()
    if (this.#state === 'ended') return
    this.#state = 'draining'
    logger.info({ inFlight: this.#feed.inFlight }, 'draining')
    this.#link?.send({ type: 'drain' })
    await this.#feed.idle()
    this.#feed.disconnected()
    this.#link?.send({ type: 'close' })
    await this.#ended.catch(() => {})
  }

  #start(): void {
    if (this.#state !== 'new') throw new Error('this consumer was started before; make a new one')
    this.#state = 'connecting'
    this.#link = new Link(this.#options.connection, {
      onReport: (report) => this.#onReport(report),
      onBroken: (cause) =>
        this.#fail(new FabricError('FABRIC_CONNECTION_LOST', cause.message, { cause })),
    })
  }

  /** All have ended, also when one has failed; and the goodbye is said. */
  async #allOf(workers: readonly Promise<void>[]): Promise<void> {
    const ends = await Promise.allSettled(workers)
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    await this.#ended
  }

  async #work(handler: Handler): Promise<void> {
    for (let batch = await this.#feed.next(); batch !== null; batch = await this.#feed.next()) {
      try {
        const results = await handler(batch)
        if (!batch.settled) batch.ack(results as BatchResults)
      } catch (error) {
        this.#giveBack(batch, error)
      }
    }
  }

  /** A throw is the batch's failure, not an item's: all come back, in halves if it was too much. */
  #giveBack(batch: Batch, error: unknown): void {
    const isTooMuch = error instanceof FabricError && error.code === 'FABRIC_OUT_OF_MEMORY'
    this.#options.logger.warn(
      { batch: batch.id, items: batch.size, err: error },
      isTooMuch ? 'batch does not fit the device, giving it back' : 'batch failed',
    )
    if (isTooMuch) batch.nack({ split: true })
    else batch.failAll(error, { retry: error instanceof ItemError ? error.retry : true })
  }

  #onReport(report: Report): void {
    const { logger, connection } = this.#options
    switch (report.type) {
      case 'connected':
        this.#onConnected(report)
        break
      case 'batch':
        this.#feed.push(report.epoch, report.buffer)
        break
      case 'drain':
        // A broker that ends asks for it too: this consumer stays, and is there for the next one.
        logger.info({}, 'the broker asks to take nothing more; finishing what is in flight')
        this.#feed.disconnected()
        break
      case 'disconnected':
        this.#isConnected = false
        this.#feed.disconnected()
        if (this.#state === 'registered') this.#state = 'connecting'
        this.emit('disconnected', report.error)
        break
      case 'unreachable':
        this.#onUnreachable(report.error, report.retryInMs)
        break
      case 'failed':
        if (report.error.code === 'FABRIC_CONSUMER_DRAINED') this.#onDrainedByOperator()
        else this.#fail(FabricError.fromBody(report.error))
        break
      case 'closed':
        if (report.unsentResults > 0)
          logger.warn(
            { batches: report.unsentResults },
            `results not sent: no broker at ${connection.socketPath}`,
          )
        this.#finish()
    }
  }

  #onConnected({ epoch, welcome, descriptors, droppedResults }: ConnectedReport): void {
    const { logger } = this.#options
    this.#isConnected = true
    this.#hasSaidUnreachable = false
    if (droppedResults > 0) this.#warnDropped({ messages: droppedResults })
    this.#welcome = welcome
    if (this.#draining !== null) {
      closeDescriptors(descriptors)
      return
    }
    this.#state = 'registered'
    this.#feed.connected(epoch, welcome, descriptors)
    const { name, transport, transportReason, layout } = welcome
    logger.info(
      { name, transport, transportReason, layout, pageSizeBytes: this.#feed.pageSizeBytes },
      `registered as ${name}, batches come by the ${transport}: ${transportReason}`,
    )
    for (const warning of welcome.warnings) logger.warn({}, warning)
    this.emit('registered', welcome)
  }

  #onDrainedByOperator(): void {
    this.#options.logger.info({}, 'the operator drained this consumer')
    this.#feed.stop()
    this.#finish()
  }

  /** One clear line for a loss or an absence, not one each try. */
  #onUnreachable(error: ErrorBody, retryInMs: number): void {
    const { logger } = this.#options
    if (this.#hasSaidUnreachable) logger.debug({ code: error.code, retryInMs }, error.message)
    else logger.warn({ code: error.code }, `${error.message}; trying again`)
    this.#hasSaidUnreachable = true
  }

  /** Who answers next may be another life of the broker: without a connection the items go with it. */
  #sendResults(
    batch: number,
    brokerLife: bigint,
    body: Uint8Array,
    earlier: (() => Uint8Array) | null,
  ): void {
    const life = brokerLife.toString(16).padStart(16, '0')
    const isSameLife = this.#welcome?.brokerLife === life
    if (this.#isConnected && !isSameLife && this.#welcome?.earlierResults !== true) {
      this.#warnDropped({ batch })
      return
    }
    const withItems = this.#isConnected && isSameLife ? null : (earlier?.() ?? null)
    const bodies = withItems === null ? [body] : [body, withItems]
    this.#link?.send(
      { type: 'results', brokerLife: life, body, earlier: withItems },
      bodies.map(({ buffer }) => buffer as ArrayBuffer),
    )
  }

  /** The items are queued again, or in disk mode were never lost: only this work is (S26). */
  #warnDropped(what: object): void {
    this.#options.logger.warn(what, 'results dropped: the broker was started anew since')
  }

  #onSettled(batch: Batch, tookMs: number): void {
    this.#batches += 1
    this.#items += batch.size
    const { id, size, paddedLength, tokenCount } = batch
    this.#options.logger.debug(
      { batch: id, items: size, paddedLength, tokens: tokenCount, ms: Math.round(tookMs) },
      'batch done',
    )
    this.emit('settled', batch, tookMs)
  }

  #fail(error: FabricError): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#feed.fail(error)
    this.#end.reject(error)
  }

  #finish(): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#options.logger.info({ batches: this.#batches, items: this.#items }, 'drained')
    this.#end.resolve()
    this.emit('drained')
  }
}
