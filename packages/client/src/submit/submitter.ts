// Sends a source of items to one job: a few requests in flight, begun in input order. A resend waits
// until everything before it is in, so that under backpressure the oldest items go first; new
// requests then stop by themselves, because the window is full.
import type { ErrorBody } from '@fabric/protocol'
import { Backoff, type RetryPolicy } from '../http/retry.js'
import type { Transport } from '../http/transport.js'
import { readAnswer, type Verdict } from './answers.js'
import { type Entry, GROUP_LIMITS, type GroupLimits, groupsOf } from './groups.js'
import { itemTokens, type SubmitItem } from './item.js'

export interface Refusal<T extends SubmitItem = SubmitItem> {
  readonly item: T
  /** Place in the input, from 0. */
  readonly index: number
  readonly error: ErrorBody
}

export interface SubmitSummary {
  /** Items that were taken from the source and answered. */
  readonly items: number
  readonly accepted: number
  /** Known to the job already, with the same body: as good as accepted. */
  readonly duplicate: number
  readonly refused: number
  /** Of what was accepted or known. */
  readonly tokens: number
  readonly requests: number
  /** Times that items had to be sent again, and the time spent waiting for room. */
  readonly retries: number
  readonly waitedMs: number
  /** The first refusals; `onRefused` is told of all. */
  readonly refusals: readonly Refusal[]
}

export interface SubmitOptions<T extends SubmitItem = SubmitItem> {
  /** More will be submitted: do not end the job's input. */
  readonly more?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  /** An item was refused for good; the others go on. */
  readonly onRefused?: ((refusal: Refusal<T>) => void) | undefined
  /** Told after every answer. */
  readonly onProgress?: ((summary: SubmitSummary) => void) | undefined
  /** The broker asked to wait. */
  readonly onWait?: ((because: ErrorBody | null, waitMs: number) => void) | undefined
  /** Requests in flight. Default 4. */
  readonly maxInFlight?: number | undefined
  readonly group?: Partial<GroupLimits> | undefined
}

const REFUSALS_KEPT_MAX = 1000
const IN_FLIGHT = 4

/**
 * The promise, or the abort when that comes first. Not a race with one promise that stands for the
 * abort: that would keep every value it was ever raced with.
 */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let onAbort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

export class Submitter<T extends SubmitItem> {
  readonly #transport: Transport
  readonly #policy: RetryPolicy
  readonly #options: SubmitOptions<T>
  readonly #path: string
  readonly #abort = new AbortController()
  readonly #summary = {
    items: 0,
    accepted: 0,
    duplicate: 0,
    refused: 0,
    tokens: 0,
    requests: 0,
    retries: 0,
    waitedMs: 0,
    refusals: [] as Refusal[],
  }

  constructor(job: string, transport: Transport, policy: RetryPolicy, options: SubmitOptions<T>) {
    this.#path = `/v1/items?job=${encodeURIComponent(job)}`
    this.#transport = transport
    this.#policy = policy
    this.#options = options
  }

  async run(source: AsyncIterable<T> | Iterable<T>): Promise<SubmitSummary> {
    const { signal, maxInFlight = IN_FLIGHT, group } = this.#options
    const abort = () => this.#abort.abort(signal?.reason)
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
    const groups = groupsOf(source, { ...GROUP_LIMITS, ...group })
    try {
      await this.#sendAll(groups, maxInFlight)
      return this.#summary
    } finally {
      signal?.removeEventListener('abort', abort)
      // Not awaited: a source that never answers must not hold up the error.
      void groups.return(undefined).catch(() => {})
    }
  }

  async #sendAll(groups: AsyncGenerator<Entry<T>[]>, maxInFlight: number): Promise<void> {
    const { signal } = this.#abort
    const window: Promise<void>[] = []
    let previous = Promise.resolve()
    for (;;) {
      const next = await unlessAborted(groups.next(), signal)
      if (next.done) break
      const before = previous
      previous = this.#send(next.value, before).catch((error) => this.#abort.abort(error))
      window.push(previous)
      if (window.length >= maxInFlight) await unlessAborted(window.shift()!, signal)
    }
    await unlessAborted(Promise.all(window), signal)
    signal.throwIfAborted()
  }

  /** Settles every entry: in, or refused for good. */
  async #send(entries: readonly Entry<T>[], previous: Promise<void>): Promise<void> {
    const { signal } = this.#abort
    const backoff = new Backoff(this.#policy)
    for (let rest = entries; rest.length > 0; ) {
      signal.throwIfAborted()
      const verdict = await this.#ask(rest).catch((error) => backoff.wait(error, signal))
      if (verdict === undefined) {
        this.#summary.retries += 1
        await previous
        continue
      }
      backoff.reset()
      if (verdict === 'split') {
        const middle = Math.ceil(rest.length / 2)
        await this.#send(rest.slice(0, middle), previous)
        return this.#send(rest.slice(middle), previous)
      }
      this.#count(rest, verdict)
      rest = verdict.again
      if (rest.length === 0) return
      this.#summary.retries += 1
      this.#options.onWait?.(verdict.because, verdict.waitMs)
      // At once, so that the groups of a full window come back one right after another.
      await Promise.all([previous, this.#policy.sleep(verdict.waitMs, signal)])
      this.#summary.waitedMs += verdict.waitMs
    }
  }

  async #ask(entries: readonly Entry<T>[]): Promise<Verdict<T> | 'split'> {
    this.#summary.requests += 1
    const reply = await this.#transport.send(this.#path, {
      method: 'POST',
      contentType: 'application/x-ndjson',
      body: entries.map((entry) => entry.line).join(''),
      signal: this.#abort.signal,
    })
    return readAnswer(entries, reply)
  }

  #count(sent: readonly Entry<T>[], verdict: Verdict<T>): void {
    const summary = this.#summary
    const notIn = new Set([...verdict.again, ...verdict.refused.map(({ entry }) => entry)])
    for (const entry of sent) if (!notIn.has(entry)) summary.tokens += itemTokens(entry.item)
    summary.accepted += verdict.accepted
    summary.duplicate += verdict.duplicate
    summary.refused += verdict.refused.length
    summary.items += sent.length - verdict.again.length
    for (const { entry, error } of verdict.refused) {
      const refusal = { item: entry.item, index: entry.index, error }
      if (summary.refusals.length < REFUSALS_KEPT_MAX) summary.refusals.push(refusal)
      this.#options.onRefused?.(refusal)
    }
    this.#options.onProgress?.(summary)
  }
}
