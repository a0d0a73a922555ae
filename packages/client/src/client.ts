// The producer's end of a broker's HTTP interface.
import { randomUUID } from 'node:crypto'
import type { ItemInfo, JobInfo, QuarantineEntry } from '@fabric/protocol'
import { DEFAULT_RETRY, type RetryPolicy, retrying } from './http/retry.js'
import { notABroker, Transport } from './http/transport.js'
import { Job } from './job.js'

export interface FabricClientOptions {
  /** Such as http://127.0.0.1:7410, which is the default. */
  readonly broker?: string | undefined
  readonly apiKey?: string | undefined
  readonly retry?: Partial<RetryPolicy> | undefined
}

export interface CreateJobOptions {
  readonly model?: number | undefined
  /** Default: a random one. */
  readonly id?: string | undefined
  /** 1 to 1000, default 1: its share of the GPUs while other jobs of its model wait, too. */
  readonly weight?: number | undefined
  /** How long its items may be held back for fuller batches, ms; 0 = any time. Default: the broker's. */
  readonly maxWaitMs?: number | undefined
}

/** Ids, of one job or of any; a whole job; or everything. */
export interface QuarantineChoice {
  readonly job?: string | undefined
  readonly ids?: readonly string[] | undefined
  readonly all?: boolean | undefined
}

const ofJob = (job: string | undefined) =>
  job === undefined ? '' : `?job=${encodeURIComponent(job)}`

export const DEFAULT_BROKER = 'http://127.0.0.1:7410'

export class FabricClient {
  readonly broker: string
  readonly #transport: Transport
  readonly #policy: RetryPolicy

  /** @throws FabricError FABRIC_USAGE when the address is no URL. */
  constructor({ broker = DEFAULT_BROKER, apiKey, retry }: FabricClientOptions = {}) {
    this.#transport = new Transport({ broker, apiKey })
    this.#policy = { ...DEFAULT_RETRY, ...retry }
    this.broker = this.#transport.address
  }

  /**
   * A job of this id and model that exists is gone on with.
   * @throws FabricError FABRIC_ID_CONFLICT when it exists for another model or with another weight or maxWaitMs.
   */
  async createJob(options: CreateJobOptions = {}): Promise<Job> {
    const { id = randomUUID(), model, weight, maxWaitMs } = options
    const request = {
      method: 'POST',
      contentType: 'application/json',
      body: JSON.stringify({ id, model, weight, maxWaitMs }),
    } as const
    // The id is ours, so asking again after a lost answer finds the job and makes no second one.
    const create = () => this.#transport.json<JobInfo>('/v1/jobs', request)
    return this.job((await retrying(this.#policy, create)).id)
  }

  /** A job that exists; nothing is asked of the broker yet. */
  job(id: string): Job {
    return new Job(id, this.#transport, this.#policy)
  }

  async jobs(): Promise<readonly JobInfo[]> {
    const body = await this.#transport.json<{ jobs: JobInfo[] } | JobInfo[]>('/v1/jobs')
    const jobs = Array.isArray(body) ? body : body.jobs
    if (!Array.isArray(jobs)) throw notABroker(this.broker, 'it lists no jobs')
    return jobs
  }

  /** An item that has not ended, and why it waits. @throws FabricError FABRIC_NOT_FOUND */
  item(id: string, { job }: { job?: string | undefined } = {}): Promise<ItemInfo> {
    return this.#transport.json(`/v1/items/${encodeURIComponent(id)}${ofJob(job)}`)
  }

  /** Cancels items of a job that have not ended; answers their ids. */
  async cancelItems(
    ids: readonly string[],
    { job }: { job?: string | undefined } = {},
  ): Promise<readonly string[]> {
    const body = { ...(job === undefined ? {} : { job }), ids }
    const { cancelled } = await this.#send<{ cancelled: string[] }>(
      'POST',
      '/v1/items/cancel',
      body,
    )
    return cancelled
  }

  /** Items that killed their consumers, oldest first (S27). */
  async quarantine(): Promise<readonly QuarantineEntry[]> {
    const { items } = await this.#transport.json<{ items: QuarantineEntry[] }>('/v1/quarantine')
    return items
  }

  /** Submits quarantined items anew; answers how many. */
  async replayQuarantined(chosen: QuarantineChoice): Promise<number> {
    return (await this.#send<{ replayed: number }>('POST', '/v1/quarantine', chosen)).replayed
  }

  /** Forgets quarantined items; answers how many. */
  async deleteQuarantined(chosen: QuarantineChoice): Promise<number> {
    return (await this.#send<{ deleted: number }>('DELETE', '/v1/quarantine', chosen)).deleted
  }

  #send<T>(method: 'POST' | 'DELETE', path: string, body: unknown): Promise<T> {
    const contentType = 'application/json'
    return this.#transport.json(path, { method, contentType, body: JSON.stringify(body) })
  }

  /** All counts of the broker (GET /v1/state). */
  state({ signal }: { signal?: AbortSignal } = {}): Promise<Record<string, unknown>> {
    return this.#transport.json('/v1/state', { signal })
  }

  /** Whether the broker lives; waits for one that does not answer as `retry` says. */
  async health(): Promise<Record<string, unknown>> {
    return retrying(this.#policy, () => this.#transport.json('/healthz'))
  }
}
