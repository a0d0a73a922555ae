// One job of a broker: items in, results out. Holds no state of its own but its id, so that any
// process may go on with a job that another began.
import type { JobInfo } from '@fabric/protocol'
import { type RetryPolicy, retrying } from './http/retry.js'
import type { Transport } from './http/transport.js'
import { checkReadable, followResults, type ResultsOptions } from './results/follow.js'
import type { JobResult } from './results/value.js'
import type { SubmitItem } from './submit/item.js'
import { type SubmitOptions, type SubmitSummary, Submitter } from './submit/submitter.js'

export class Job {
  readonly #transport: Transport
  readonly #policy: RetryPolicy

  constructor(
    readonly id: string,
    transport: Transport,
    policy: RetryPolicy,
  ) {
    this.#transport = transport
    this.#policy = policy
  }

  /**
   * Sends all items and, unless `more`, ends the job's input. Waits while the broker's queue is full;
   * sends again what a broken connection left open (ids make that safe). A refused item does not stop
   * the others: see `refusals` and `onRefused`.
   */
  async submit<T extends SubmitItem>(
    items: AsyncIterable<T> | Iterable<T>,
    options: SubmitOptions<T> = {},
  ): Promise<SubmitSummary> {
    const submitter = new Submitter<T>(this.id, this.#transport, this.#policy, options)
    const summary = await submitter.run(items)
    if (!options.more) await this.flush({ signal: options.signal })
    return summary
  }

  /** Results in the order in which items ended, until the job ends. */
  results(options: ResultsOptions = {}): AsyncGenerator<JobResult> {
    return followResults(this.#transport, this.#policy, this.id, options)
  }

  /**
   * Whether `results` can begin at an offset, before what holds the earlier ones is given up.
   * @throws FabricError FABRIC_RESULTS_GONE when it cannot.
   */
  checkReadable(offset: number): Promise<void> {
    return retrying(this.#policy, () => checkReadable(this.#transport, this.id, offset))
  }

  info({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<JobInfo> {
    const request = () => this.#transport.json<JobInfo>(this.#path(), { signal })
    return retrying(this.#policy, request, signal)
  }

  /** Ends the job's input: what waits is packed without waiting for more (S29). */
  async flush({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const request = () => this.#transport.json(this.#path('/flush'), { method: 'POST', signal })
    await retrying(this.#policy, request, signal)
  }

  /** Holds its waiting items back until it is resumed. */
  async pause(): Promise<void> {
    await this.#transport.json(this.#path('/pause'), { method: 'POST' })
  }

  async resume(): Promise<void> {
    await this.#transport.json(this.#path('/resume'), { method: 'POST' })
  }

  /** Cancels what has not ended; a broker with a disk forgets the job with it. */
  async cancel(): Promise<void> {
    await this.delete()
  }

  /** Forgets a job that has ended, with its results; one that has not is cancelled. */
  async delete(): Promise<void> {
    await this.#transport.json(this.#path(), { method: 'DELETE' })
  }

  #path(rest = ''): string {
    return `/v1/jobs/${encodeURIComponent(this.id)}${rest}`
  }
}
