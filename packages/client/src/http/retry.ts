// Waiting: for a broker that does not answer, with growing delays and an end; for one that asks to come
// back, as long as it asks.
import { setTimeout as delay } from 'node:timers/promises'
import { FabricError } from '@fabric/protocol'
import { waitAskedMs } from './answered.js'

export interface RetryPolicy {
  /** A broker that has not answered for this long is given up, and the error passed on. */
  readonly forMs: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly now: () => number
}

/** Longer than a broker takes to start with millions of items on its disk. */
export const DEFAULT_RETRY: RetryPolicy = {
  forMs: 300_000,
  firstDelayMs: 100,
  maxDelayMs: 5_000,
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal === undefined ? {} : { signal })
  },
  now: () => performance.now(),
}

/** The broker did not answer: the same request may succeed later. */
export const isTransient = (error: unknown): error is FabricError =>
  error instanceof FabricError &&
  (error.code === 'FABRIC_BROKER_UNREACHABLE' || error.code === 'FABRIC_CONNECTION_LOST')

/** Doubling delays between tries in a row; any answer begins anew. */
export class Backoff {
  #failures = 0
  #firstFailureAt = 0
  /** Delays of this row of failures: a clock that stands still must not make it endless. */
  #sleptMs = 0

  constructor(readonly policy: RetryPolicy) {}

  reset(): void {
    this.#failures = 0
    this.#sleptMs = 0
  }

  /** Waits before the next try. @throws `error` when no try can mend it, or the time for tries is over. */
  async wait(error: unknown, signal?: AbortSignal): Promise<void> {
    const { policy } = this
    const askedMs = waitAskedMs(error)
    if (askedMs !== null) {
      this.reset()
      return policy.sleep(askedMs, signal)
    }
    if (!isTransient(error)) throw error
    if (this.#failures === 0) this.#firstFailureAt = policy.now()
    const spentMs = Math.max(this.#sleptMs, policy.now() - this.#firstFailureAt)
    const leftMs = policy.forMs - spentMs
    if (leftMs <= 0) throw error
    const delayMs = Math.min(policy.firstDelayMs * 2 ** this.#failures, policy.maxDelayMs, leftMs)
    this.#failures += 1
    this.#sleptMs += delayMs
    await policy.sleep(delayMs, signal)
  }
}

/** Repeats an idempotent request until the broker answers it. */
export async function retrying<T>(
  policy: RetryPolicy,
  request: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const backoff = new Backoff(policy)
  for (;;) {
    try {
      return await request()
    } catch (error) {
      await backoff.wait(error, signal)
    }
  }
}
