// From the items of one request to answers: blocks of columns go to the core as long as they belong
// to one job, one answer comes back per item, and a long body gives way to other work in between.

import {
  SUBMIT_ACCEPTED,
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
  SUBMIT_TOO_LARGE,
  type SubmitBlock,
} from '@fabric/core'
import { type ErrorBody, FabricError, type ItemAnswer, type ItemsResponse } from '@fabric/protocol'
import type { Job } from '../jobs.js'
import type { RawItem } from './body.js'
import { ItemColumns } from './columns.js'
import { appendItem, checkHead } from './item.js'

/** What the core said about a block. */
export interface SubmitAnswer {
  readonly codes: Uint8Array
  readonly retryAfterMs: number
  /**
   * Disk mode: resolves with the last word on each item once what is accepted is durable, and rejects
   * with the disk's error when nothing is. Null: the codes are the last word.
   */
  readonly durable: Promise<Uint8Array> | null
}

export interface IngestTarget {
  /** @throws FabricError FABRIC_NOT_FOUND */
  job(id: string): Job
  /** @throws FabricError FABRIC_DRAINING */
  submit(job: Job, block: SubmitBlock, durable: boolean): SubmitAnswer
  /** Resolves when more may be on its way to the disk. */
  room(): Promise<void>
  /** Whether items can be durable at all. */
  readonly canBeDurable: boolean
  readonly maxItemBytes: number
}

/** A block is handed over at this size: small enough that nothing else waits long for the loop. */
const BLOCK_ITEMS_MAX = 1024
const BLOCK_BYTES_MAX = 1024 * 1024

const ID_CONFLICT: ErrorBody = {
  code: 'FABRIC_ID_CONFLICT',
  message: 'the id was used in this job with another body',
  field: 'id',
}
export const NOT_DURABLE = 'this broker keeps items in memory only: it was started without dataDir'
const QUEUE_FULL: ErrorBody = { code: 'FABRIC_QUEUE_FULL', message: 'the queue is full' }
const RESULTS_UNREAD: ErrorBody = {
  code: 'FABRIC_RESULTS_UNREAD',
  message: 'the job has too many unread results: read them first',
}

// Buffers for the columns, kept between requests: one set is enough, since a request uses it only
// between two turns of the loop.
const columns = new ItemColumns()

export class Ingest {
  readonly #answers: ItemAnswer[] = []
  /** Places in the answers of the items in the columns, and the items themselves. */
  #pending: number[] = []
  #pendingItems: RawItem[] = []
  #job: Job
  #accepted = 0
  #duplicate = 0
  #refused = 0
  #retryAfterMs = 0
  /** A list is accepted as its longest prefix that fits (S34): nothing behind it is tried. */
  #full = false
  /** Of the items in the columns. */
  #durable: boolean
  /** Blocks whose last word is to come. */
  readonly #underWay: Promise<void>[] = []

  constructor(
    readonly target: IngestTarget,
    readonly defaultJob: Job,
    /** What an item is that does not say. */
    readonly defaultDurable: boolean,
  ) {
    this.#job = defaultJob
    this.#durable = defaultDurable
  }

  /** Resolves when every answer is the last word: what is called accepted is durable, if it shall be. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** Takes items until about `BLOCK` of them stand in the core. @returns false at their end. */
  takeBlock(items: Iterator<RawItem>): boolean {
    columns.clear()
    const end = this.#answers.length + BLOCK_ITEMS_MAX
    while (this.#answers.length < end && columns.bytes < BLOCK_BYTES_MAX) {
      const next = items.next()
      if (next.done) {
        this.#submit()
        return false
      }
      this.#take(next.value)
    }
    this.#submit()
    return true
  }

  response(): ItemsResponse {
    return {
      accepted: this.#accepted,
      duplicate: this.#duplicate,
      refused: this.#refused,
      items: this.#answers,
      ...(this.#retryAfterMs > 0 ? { retryAfterMs: this.#retryAfterMs } : {}),
    }
  }

  #take(raw: RawItem): void {
    // First, for a plain line is read straight into the columns: they must be of its job.
    if (this.#job !== this.defaultJob || this.#durable !== this.defaultDurable)
      this.#switchTo(this.defaultJob, this.defaultDurable)
    const plain = this.#full ? null : raw.readPlain(columns)
    if (plain === null) {
      this.#takeParsed(raw)
      return
    }
    columns.pushTokens(plain.id, plain.model ?? this.#job.model ?? 0, plain.length)
    this.#accept(plain.id, raw)
  }

  #takeParsed(raw: RawItem): void {
    const parsed = this.#refusing(raw, null, () => ({ value: raw.parse() }))
    if (parsed === null) return
    const found = this.#refusing(raw, idOf(parsed.value), () => {
      const item = checkHead(parsed.value)
      const durable = this.#durability(item.durable)
      const job = item.job == null ? this.defaultJob : this.target.job(item.job)
      return { item, job, durable }
    })
    if (found === null) return
    const { item, job, durable } = found
    // Not within a refusal: what the core says of the block before concerns the whole request.
    if (job !== this.#job || durable !== this.#durable) this.#switchTo(job, durable)
    if (this.#full) {
      this.#refuse(this.#answers.length, item.id, QUEUE_FULL, raw)
      return
    }
    this.#refusing(raw, item.id, () => {
      appendItem(columns, item, item.model ?? job.model ?? 0)
      this.#accept(item.id, raw)
    })
  }

  /** Runs `work`; what it throws refuses this one item. */
  #refusing<T>(raw: RawItem, id: string | null, work: () => T): T | null {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof FabricError)) throw error
      this.#refuse(this.#answers.length, id, error.toBody(), raw)
      return null
    }
  }

  #durability(asked: unknown): boolean {
    if (asked !== true || this.target.canBeDurable) return (asked ?? this.defaultDurable) === true
    throw new FabricError('FABRIC_ITEM_MALFORMED', NOT_DURABLE, { field: 'durable' })
  }

  #switchTo(job: Job, durable: boolean): void {
    this.#submit()
    this.#job = job
    this.#durable = durable
  }

  /** The item stands in the columns; the core has the last word. */
  #accept(id: string, raw: RawItem): void {
    this.#pending.push(this.#answers.length)
    this.#pendingItems.push(raw)
    this.#answers.push({ id, status: 'accepted' })
  }

  #submit(): void {
    if (columns.count === 0) return
    const block = columns.block(this.#job.number)
    const { codes, retryAfterMs, durable } = this.target.submit(this.#job, block, this.#durable)
    this.#retryAfterMs = Math.max(this.#retryAfterMs, retryAfterMs)
    this.#full ||= codes.includes(SUBMIT_QUEUE_FULL)
    const batch = {
      places: this.#pending,
      items: this.#pendingItems,
      tooLarge: new Map<number, ErrorBody>(),
    }
    // The block is gone by the time the disk answers.
    codes.forEach((code, i) => {
      if (code === SUBMIT_TOO_LARGE)
        batch.tooLarge.set(i, tooLarge(block, i, this.target.maxItemBytes))
    })
    if (durable === null) this.#answer(batch, codes, QUEUE_FULL)
    else this.#underWay.push(this.#answerWhenDurable(batch, codes, durable))
    columns.clear()
    this.#pending = []
    this.#pendingItems = []
  }

  async #answerWhenDurable(batch: Batch, admitted: Uint8Array, durable: Promise<Uint8Array>) {
    try {
      this.#answer(batch, await durable, QUEUE_FULL)
    } catch (error) {
      if (!(error instanceof FabricError)) throw error
      const nothing = admitted.map((code) => (code === SUBMIT_ACCEPTED ? NOT_KEPT : code))
      this.#answer(batch, nothing, error.toBody())
    }
  }

  #answer(batch: Batch, codes: Uint8Array, notKept: ErrorBody): void {
    batch.places.forEach((at, i) => {
      const id = this.#answers[at].id as string
      if (codes[i] === SUBMIT_ACCEPTED) this.#accepted += 1
      else if (codes[i] === SUBMIT_DUPLICATE) {
        this.#duplicate += 1
        this.#answers[at] = { id, status: 'duplicate' }
      } else {
        const error = batch.tooLarge.get(i) ?? refusal(codes[i], notKept)
        this.#refuse(at, id, error, batch.items[i])
      }
    })
  }

  #refuse(at: number, id: string | null, error: ErrorBody, raw: RawItem): void {
    this.#refused += 1
    this.#answers[at] = { id, status: 'refused', error: withPlace(error, raw) }
  }
}

/** What was asked of the core in one block, for its answers. */
interface Batch {
  readonly places: readonly number[]
  readonly items: readonly RawItem[]
  readonly tooLarge: Map<number, ErrorBody>
}

/** A code of our own: the disk did not keep it. */
const NOT_KEPT = 255

function refusal(code: number, notKept: ErrorBody): ErrorBody {
  if (code === SUBMIT_CONFLICT) return ID_CONFLICT
  if (code === NOT_KEPT) return notKept
  return code === SUBMIT_QUEUE_FULL ? QUEUE_FULL : RESULTS_UNREAD
}

/** The id of an item that was refused before it was known to be one. */
function idOf(value: unknown): string | null {
  const id = (value as { id?: unknown } | null)?.id
  return typeof id === 'string' ? id : null
}

/** The core says that an item is too large, not for which limit: its bytes tell (S34). */
function tooLarge(block: SubmitBlock, i: number, maxItemBytes: number): ErrorBody {
  const bytesOf = (ends: Uint32Array | null) =>
    ends === null ? 0 : ends[i] - (i === 0 ? 0 : ends[i - 1])
  const payloadBytes = bytesOf(block.payloadEnds)
  const dataBytes = payloadBytes > 0 ? payloadBytes : 4 * block.lengths[i]
  const code = 'FABRIC_TOO_LARGE'
  if (dataBytes + bytesOf(block.idEnds) > maxItemBytes)
    return {
      code,
      message: 'the item is over maxItemBytes',
      field: payloadBytes > 0 ? 'payload' : 'tokens',
    }
  return {
    code,
    message: 'an item of this length fits no batch (maxBatchBytes) or no queue (maxQueuedTokens)',
    field: payloadBytes > 0 ? 'length' : 'tokens',
  }
}

/** The error with its line, and the field's path from the body: `items[3].tokens`. */
function withPlace({ code, message, field = '' }: ErrorBody, { line, path }: RawItem) {
  const whole = path === '' || field === '' ? path + field : `${path}.${field}`
  return {
    code,
    message,
    ...(whole === '' ? {} : { field: whole }),
    ...(line === 0 ? {} : { line }),
  }
}
