// How items ended becomes results of their jobs: the value is found in the consumer's message and
// copied into the job's log, counts and waiting readers are told. Called while a settle effect is
// applied, when the slots can still be read.

import type { Effect, ItemView, SettledStatus } from '@fabric/core'
import { BATCH_SIZE_MAX, Encoding, type ErrorBody, type ResultsMessage } from '@fabric/protocol'
import type { Job, JobTable } from './jobs.js'
import { encodeErrorValue, errorFrom } from './results/render.js'
import type { Stats } from './stats.js'

type SettleEffect = Extract<Effect, { type: 'settle' }>
interface Value {
  readonly encoding: number
  readonly value: Uint8Array
  readonly truncatedTo: number
}

const NO_ENTRY = -1
const NO_VALUE: Value = { encoding: Encoding.none, value: new Uint8Array(0), truncatedTo: 0 }

export class Settlement {
  /** Entry of the message for each place in the batch. */
  #entryOf = new Int32Array(1024).fill(NO_ENTRY)

  constructor(
    readonly items: ItemView,
    readonly jobs: JobTable,
    readonly stats: Stats,
    /** S34: told once per job and effect. */
    readonly onStored: (job: Job, bytes: number) => void,
  ) {}

  /** @param message what the consumer sent, or null when the broker ended the items itself. */
  apply(effect: SettleEffect, message: ResultsMessage | null): void {
    if (message !== null) this.#mapEntries(message)
    let job: Job | null = null
    let storedBytes = 0
    for (let i = 0; i < effect.items.length; i++) {
      const slot = effect.items[i]
      const number = this.items.job(slot)
      if (job === null || job.number !== number) {
        if (job !== null) this.#tell(job, storedBytes)
        job = this.jobs.byNumber(number)
        storedBytes = 0
      }
      storedBytes += this.#store(job, slot, effect, i, message)
    }
    if (job !== null) this.#tell(job, storedBytes)
    if (message !== null) this.#entryOf.fill(NO_ENTRY)
  }

  #store(
    job: Job,
    slot: number,
    effect: SettleEffect,
    i: number,
    message: ResultsMessage | null,
  ): number {
    const { items } = this
    const status = effect.status[i]
    const entry = message === null ? NO_ENTRY : this.#entryOf[effect.index[i]]
    const { encoding, value, truncatedTo } = resultValue(effect, status, entry, message)
    const idAt = items.idOffset(slot)
    job.settled[status] += 1
    this.stats.countSettled(items.model(slot), status)
    return job.results.append({
      status,
      attempts: Math.max(effect.batch === null ? 0 : 1, items.deliveries(slot)),
      truncatedTo,
      encoding,
      value,
      id: items.segmentBytes(slot).subarray(idAt, idAt + items.idBytes(slot)),
    })
  }

  #tell(job: Job, storedBytes: number): void {
    this.onStored(job, storedBytes)
    job.wake()
  }

  #mapEntries({ index, count }: ResultsMessage): void {
    for (let entry = 0; entry < count; entry++) {
      const place = index[entry]
      if (place >= BATCH_SIZE_MAX) continue
      if (place >= this.#entryOf.length) {
        const larger = new Int32Array(2 ** Math.ceil(Math.log2(place + 1))).fill(NO_ENTRY)
        larger.set(this.#entryOf)
        this.#entryOf = larger
      }
      // The first entry for a place is the one the core settles by.
      if (this.#entryOf[place] === NO_ENTRY) this.#entryOf[place] = entry
    }
  }
}

function resultValue(
  { reason }: SettleEffect,
  status: SettledStatus,
  entry: number,
  message: ResultsMessage | null,
): Value {
  if (status !== 'completed' && status !== 'failed') return NO_VALUE
  const sent =
    message === null || entry === NO_ENTRY
      ? null
      : {
          encoding: message.encoding[entry],
          value: message.value(entry),
          truncatedTo: message.truncatedTo[entry],
        }
  if (status === 'completed') return sent ?? NO_VALUE
  const last = sent?.encoding === Encoding.error ? errorFrom(sent.value) : null
  const error = failureOf(reason, last)
  return { encoding: Encoding.error, value: encodeErrorValue(error), truncatedTo: 0 }
}

function failureOf(reason: SettleEffect['reason'], last: ErrorBody | null): ErrorBody {
  const lastWords = last === null ? '' : `; the last time: ${last.message}`
  if (reason === 'max_attempts')
    return { code: 'FABRIC_MAX_ATTEMPTS', message: `failed maxAttempts times${lastWords}` }
  if (reason === 'max_deliveries')
    return {
      code: 'FABRIC_MAX_DELIVERIES',
      message: `delivered maxDeliveries times and never settled${lastWords}`,
    }
  return last ?? { code: 'FABRIC_ITEM_FAILED', message: 'the consumer failed the item' }
}
