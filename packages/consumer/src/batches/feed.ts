// Hands batches to whoever asks, at most maxInFlight at a time, over any number of connections: a batch
// in hand outlives the connection it came by. Owns what is in flight; the intake owns what waits.
import {
  type BatchView,
  type ErrorBody,
  encodeEarlierResults,
  FabricError,
  type ItemResult,
  openBatch,
  type Welcome,
} from '@fabric/protocol'
import { RingReader } from '@fabric/shm-ring'
import { messageOf } from '../log.js'
import { Batch } from './batch.js'
import type { InputLengthPolicy } from './input-length.js'
import { inputsOf } from './inputs.js'
import { type Incoming, Intake } from './intake.js'
import { resultsBodies } from './messages.js'

export interface FeedListener {
  /** Work on a batch begins. */
  taken(epoch: number, batch: number): void
  /** @param earlier the same with the items, for another life of the broker; null: it is too large */
  results(
    batch: number,
    brokerLife: bigint,
    body: Uint8Array,
    earlier: (() => Uint8Array) | null,
  ): void
  settled(batch: Batch, tookMs: number): void
  /** The connection gives bytes that cannot be used. */
  broken(epoch: number, error: ErrorBody): void
}

interface Waiter {
  resolve(batch: Batch | null): void
  reject(error: FabricError): void
}

export class BatchFeed {
  readonly #policy: InputLengthPolicy
  readonly #listener: FeedListener
  readonly #waiters: Waiter[] = []
  readonly #idleWaiters: (() => void)[] = []
  #intake: Intake | null = null
  #epoch = 0
  #maxInFlight = 0
  #inFlight = 0
  #isStopped = false
  #failure: FabricError | null = null

  constructor(policy: InputLengthPolicy, listener: FeedListener) {
    this.#policy = policy
    this.#listener = listener
  }

  get inFlight(): number {
    return this.#inFlight
  }

  get pageSizeBytes(): number | null {
    return this.#intake?.pageSizeBytes ?? null
  }

  /** A connection stands; `descriptors` are its ring's, if it has one. */
  connected(epoch: number, welcome: Welcome, descriptors: readonly number[]): void {
    this.#epoch = epoch
    this.#maxInFlight = welcome.maxInFlight
    try {
      const ring = descriptors.length === 0 ? null : RingReader.attach([...descriptors])
      this.#intake = new Intake(ring, () => this.#pump())
    } catch (error) {
      const message = `the ring cannot be mapped: ${messageOf(error)} (the transport socket needs none)`
      this.#listener.broken(epoch, { code: 'FABRIC_RING_UNAVAILABLE', message })
    }
  }

  /** A batch came by the socket. */
  push(epoch: number, buffer: ArrayBuffer): void {
    if (epoch !== this.#epoch || this.#intake === null) return
    this.#intake.push(buffer)
    this.#pump()
  }

  /** What waits is the broker's again, until the next connection; what is in hand goes on. */
  disconnected(): void {
    this.#intake?.end()
    this.#intake = null
  }

  /** The next batch; null once it is stopped. @throws FabricError when the consumer has failed */
  next(): Promise<Batch | null> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    if (this.#isStopped) return Promise.resolve(null)
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject })
      this.#pump()
    })
  }

  /** Hands out nothing more. */
  stop(): void {
    this.#isStopped = true
    for (const { resolve } of this.#waiters.splice(0)) resolve(null)
  }

  fail(error: FabricError): void {
    this.#failure = error
    this.disconnected()
    for (const { reject } of this.#waiters.splice(0)) reject(error)
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  #pump(): void {
    while (this.#waiters.length > 0 && this.#inFlight < this.#maxInFlight) {
      const incoming = this.#intake?.next() ?? null
      if (incoming === null) return
      const batch = this.#begin(incoming)
      if (batch === null) return
      // Every item was too long: settled, and nothing to do.
      if (!batch.settled) this.#waiters.shift()?.resolve(batch)
    }
  }

  #begin(incoming: Incoming): Batch | null {
    try {
      const view = openBatch(incoming.buffer)
      const startedAt = performance.now()
      const batch: Batch = new Batch(view, this.#policy, {
        send: (results) => this.#send(view, results),
        done: () => this.#done(incoming, batch, performance.now() - startedAt),
      })
      incoming.take()
      this.#inFlight += 1
      this.#listener.taken(this.#epoch, view.batch)
      return batch
    } catch (error) {
      const broken =
        error instanceof FabricError
          ? error
          : new FabricError('FABRIC_BATCH_MALFORMED', messageOf(error))
      incoming.release()
      this.disconnected()
      this.#listener.broken(this.#epoch, broken.toBody())
      return null
    }
  }

  #send(view: BatchView, results: readonly ItemResult[]): void {
    const { batch, brokerLife } = view
    const bodies = resultsBodies(batch, brokerLife, results)
    const earlier = (body: Uint8Array) => () =>
      encodeEarlierResults(
        body,
        inputsOf(
          view,
          results.map(({ index }) => index),
        ),
      )
    for (const body of bodies)
      this.#listener.results(batch, brokerLife, body, bodies.length > 1 ? null : earlier(body))
  }

  #done(incoming: Incoming, batch: Batch, tookMs: number): void {
    incoming.release()
    this.#inFlight -= 1
    this.#listener.settled(batch, tookMs)
    if (this.#inFlight === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve()
    this.#pump()
  }
}
