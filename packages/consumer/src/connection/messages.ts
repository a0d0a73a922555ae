// What the handler's thread and the connection's thread say to each other. A connection has a number
// (`epoch`), so that words about an earlier one are known as such.
import type { ErrorBody, Hello, Welcome } from '@fabric/protocol'

export interface ConnectionOptions {
  readonly socketPath: string
  /** What is said to the broker; the ring's ABI is filled in by who can map it. */
  readonly hello: Omit<Hello, 'ringAbi'>
  /** false: the first failure, or loss, ends it. */
  readonly reconnect: boolean
  /** Without a connection for this long it gives up; null = never. */
  readonly connectTimeoutMs: number | null
}

/** From the handler's thread. */
export type Command =
  | { readonly type: 'taken'; readonly epoch: number; readonly batch: number }
  /** Bodies of a results frame, and of one for another life of the broker; their buffers are transferred. */
  | {
      readonly type: 'results'
      readonly brokerLife: string
      readonly body: Uint8Array
      readonly earlier: Uint8Array | null
    }
  /** Asks the broker for nothing new. */
  | { readonly type: 'drain' }
  /** Drops a connection whose batches cannot be read, and connects anew. */
  | { readonly type: 'reset'; readonly epoch: number; readonly error: ErrorBody }
  /** Says goodbye, when all is settled, and ends. */
  | { readonly type: 'close' }

/** From the connection's thread. */
export type Report =
  /** Registered. The descriptors are the ring's; whoever gets this owns them. */
  | {
      readonly type: 'connected'
      readonly epoch: number
      readonly welcome: Welcome
      readonly descriptors: readonly number[]
      /** Messages of results that were ready for another life of the broker, and are gone. */
      readonly droppedResults: number
    }
  | { readonly type: 'batch'; readonly epoch: number; readonly buffer: ArrayBuffer }
  /** The broker wants nothing more to be taken on this connection. */
  | { readonly type: 'drain'; readonly epoch: number }
  | { readonly type: 'disconnected'; readonly epoch: number; readonly error: ErrorBody }
  /** No connection yet; the next try comes after `retryInMs`. */
  | { readonly type: 'unreachable'; readonly error: ErrorBody; readonly retryInMs: number }
  /** It has given up, or was refused for good. */
  | { readonly type: 'failed'; readonly error: ErrorBody }
  | { readonly type: 'closed'; readonly unsentResults: number }
