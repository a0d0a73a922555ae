// Waiting: how long after a broken connection, and after a refusal for room.
import { setTimeout as delay } from 'node:timers/promises'
import { FabricError } from '@fabric/protocol'

export interface RetryPolicy {
  /** Tries in a row without an answer before an error is passed on. */
  readonly attempts: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** About half a minute in all: longer than the restart of a broker. */
export const DEFAULT_RETRY: RetryPolicy = {
  attempts: 11,
  firstDelayMs: 100,
  maxDelayMs: 5_000,
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal === undefined ? {} : { signal })
  },
}

/** The broker did not answer: the same request may succeed later. */
export const isTransient = (error: unknown): error is FabricError =>
  error instanceof FabricError &&
  (error.code === 'FABRIC_BROKER_UNREACHABLE' || error.code === 'FABRIC_CONNECTION_LOST')

/** Doubling delays between tries in a row; any answer begins anew. */
export class Backoff {
  #failures = 0

  constructor(readonly policy: RetryPolicy) {}

  reset(): void {
    this.#failures = 0
  }

  /** Waits before the next try. @throws `error` when it is not transient or tries are used up. */
  async wait(error: unknown, signal?: AbortSignal): Promise<void> {
    this.#failures += 1
    if (!isTransient(error) || this.#failures >= this.policy.attempts) throw error
    const delayMs = this.policy.firstDelayMs * 2 ** (this.#failures - 1)
    await this.policy.sleep(Math.min(delayMs, this.policy.maxDelayMs), signal)
  }
}

/** Repeats an idempotent request until the broker answers. */
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
