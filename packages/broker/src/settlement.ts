// How items ended becomes results of their jobs: the value is found in the consumer's message and
// copied into the job's log, counts and waiting readers are told. Called while a settle effect is
// applied, when the slots can still be read.

import type { Effect, ItemView, SettledStatus } from '@fabric/core'
import { BATCH_SIZE_MAX, Encoding, type ErrorBody, type ResultsMessage } from '@fabric/protocol'
import type { Job, JobTable } from './jobs.js'
import type { ResultRecord } from './results/log.js'
import { encodeErrorValue, errorFrom } from './results/render.js'
import type { Stats } from './stats.js'

type SettleEffect = Extract<Effect, { type: 'settle' }>
interface Value {
  readonly encoding: number
  readonly value: Uint8Array
  readonly truncatedTo: number
}

/** Where results go: the job's log in memory, or the store. */
export interface ResultKeeper {
  /** The slot can be read, and the record is borrowed, until `flush` returns. */
  add(job: Job, slot: number, record: ResultRecord): void
  /** After each settle effect. */
  flush(): void
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
    readonly keeper: ResultKeeper,
  ) {}

  /** @param message what the consumer sent, or null when the broker ended the items itself. */
  apply(effect: SettleEffect, message: ResultsMessage | null): void {
    if (message !== null) this.#mapEntries(message)
    let job: Job | null = null
    for (let i = 0; i < effect.items.length; i++) {
      const slot = effect.items[i]
      const number = this.items.job(slot)
      if (job === null || job.number !== number) job = this.jobs.byNumber(number)
      this.#keep(job, slot, effect, i, message)
    }
    this.keeper.flush()
    if (message !== null) this.#entryOf.fill(NO_ENTRY)
  }

  #keep(
    job: Job,
    slot: number,
    effect: SettleEffect,
    i: number,
    message: ResultsMessage | null,
  ): void {
    const { items } = this
    const status = effect.status[i]
    const entry = message === null ? NO_ENTRY : this.#entryOf[effect.index[i]]
    const { encoding, value, truncatedTo } = resultValue(effect, status, entry, message)
    const idAt = items.idOffset(slot)
    this.stats.countSettled(items.model(slot), status)
    this.keeper.add(job, slot, {
      status,
      attempts: Math.max(effect.batch === null ? 0 : 1, items.deliveries(slot)),
      truncatedTo,
      encoding,
      value,
      id: items.segmentBytes(slot).subarray(idAt, idAt + items.idBytes(slot)),
    })
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

/** What the consumer said of an item, by the message's entry. */
export const sentValue = (
  status: 'completed' | 'failed',
  entry: number,
  message: ResultsMessage,
): Value => resultValue({ reason: 'result' }, status, entry, message)

function resultValue(
  { reason }: Pick<SettleEffect, 'reason'>,
  status: SettledStatus,
  entry: number,
  message: ResultsMessage | null,
): Value {
  if (status === 'cancelled' || status === 'expired') return earlyEndValue(status)
  if (status === 'quarantined') return errorValue(QUARANTINED)
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
  return errorValue(failureOf(reason, last))
}

const EXPIRED: ErrorBody = {
  code: 'FABRIC_DEADLINE_PASSED',
  message: 'not done within its deadlineMs',
}
const QUARANTINED: ErrorBody = {
  code: 'FABRIC_QUARANTINED',
  message: 'its consumers died of it; it is kept in quarantine',
}

/** Of an item that ended without a consumer's word (S35). */
export const earlyEndValue = (status: 'cancelled' | 'expired'): Value =>
  status === 'cancelled' ? NO_VALUE : errorValue(EXPIRED)

const errorValue = (error: ErrorBody): Value => ({
  encoding: Encoding.error,
  value: encodeErrorValue(error),
  truncatedTo: 0,
})

function failureOf(reason: SettleEffect['reason'], last: ErrorBody | null): ErrorBody {
  const lastWords = last === null ? '' : `; the last time: ${last.message}`
  if (reason === 'max_attempts')
    return { code: 'FABRIC_MAX_ATTEMPTS', message: `failed maxAttempts times${lastWords}` }
  if (reason === 'out_of_memory')
    return {
      code: 'FABRIC_OUT_OF_MEMORY',
      message: `too much for the device all by itself, maxAttempts times${lastWords}`,
    }
  if (reason === 'max_deliveries')
    return {
      code: 'FABRIC_MAX_DELIVERIES',
      message: `delivered maxDeliveries times and never settled${lastWords}`,
    }
  return last ?? { code: 'FABRIC_ITEM_FAILED', message: 'the consumer failed the item' }
}
