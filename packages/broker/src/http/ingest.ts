// From the items of one request to answers: blocks of columns go to the core as long as they belong
// to one job, one answer comes back per item, and a long body gives way to other work in between.
import {
  type ErrorBody,
  type ErrorCode,
  FabricError,
  type ItemAnswer,
  type ItemsResponse,
} from '@fabric/protocol'
import {
  SUBMIT_ACCEPTED,
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
  SUBMIT_TOO_LARGE,
  type SubmitBlock,
} from '../core/types.js'
import type { Job } from '../jobs.js'
import type { RawItem } from './body.js'
import { ItemColumns } from './columns.js'
import { appendItem, checkHead } from './item.js'

/** What the core said about a block. */
export interface SubmitAnswer {
  readonly codes: Uint8Array
  readonly retryAfterMs: number
}

export interface IngestTarget {
  /** @throws FabricError FABRIC_NOT_FOUND */
  job(id: string): Job
  /** @throws FabricError FABRIC_DRAINING */
  submit(job: Job, block: SubmitBlock): SubmitAnswer
}

/** A block is handed over at this size: small enough that nothing else waits long for the loop. */
const BLOCK_ITEMS_MAX = 1024
const BLOCK_BYTES_MAX = 1024 * 1024

const REFUSALS: Readonly<Record<number, { code: ErrorCode; message: string }>> = {
  [SUBMIT_CONFLICT]: {
    code: 'FABRIC_ID_CONFLICT',
    message: 'the id was used in this job with another body',
  },
  [SUBMIT_TOO_LARGE]: { code: 'FABRIC_TOO_LARGE', message: 'the item is over maxItemBytes' },
  [SUBMIT_QUEUE_FULL]: { code: 'FABRIC_QUEUE_FULL', message: 'the queue is full' },
}
const QUEUE_FULL = new FabricError('FABRIC_QUEUE_FULL', 'the queue is full')
const RESULTS_UNREAD = {
  code: 'FABRIC_RESULTS_UNREAD' as const,
  message: 'the job has too many unread results: read them first',
}

// Buffers for the columns, kept between requests: one set is enough, since a request uses it only
// between two turns of the loop.
const columns = new ItemColumns()

export class Ingest {
  readonly #answers: ItemAnswer[] = []
  /** Line of each answer, 0 where there are none. */
  readonly #lines: number[] = []
  /** Places in the answers of the items in the columns. */
  #pending: number[] = []
  #job: Job
  #accepted = 0
  #duplicate = 0
  #refused = 0
  #retryAfterMs = 0
  /** A list is accepted as its longest prefix that fits (S34): nothing behind it is tried. */
  #full = false

  constructor(
    readonly target: IngestTarget,
    readonly defaultJob: Job,
  ) {
    this.#job = defaultJob
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
    if (this.#job !== this.defaultJob) this.#switchTo(this.defaultJob)
    const plain = this.#full ? null : raw.readPlain(columns)
    if (plain === null) {
      this.#takeParsed(raw)
      return
    }
    columns.pushTokens(plain.id, plain.model ?? this.#job.model ?? 0, plain.length)
    this.#accept(plain.id, raw.line)
  }

  #takeParsed(raw: RawItem): void {
    const found = this.#refusing(raw, null, () => {
      const item = checkHead(raw.parse())
      return { item, job: item.job == null ? this.defaultJob : this.target.job(item.job) }
    })
    if (found === null) return
    const { item, job } = found
    // Not within a refusal: what the core says of the block before concerns the whole request.
    if (job !== this.#job) this.#switchTo(job)
    this.#refusing(raw, item.id, () => {
      if (this.#full) throw QUEUE_FULL
      appendItem(columns, item, item.model ?? job.model ?? 0)
      this.#accept(item.id, raw.line)
    })
  }

  /** Runs `work`; what it throws refuses this one item. */
  #refusing<T>(raw: RawItem, id: string | null, work: () => T): T | null {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof FabricError)) throw error
      this.#lines.push(raw.line)
      this.#refuse(this.#answers.length, id ?? idOf(raw), withPlace(error, raw))
      return null
    }
  }

  #switchTo(job: Job): void {
    this.#submit()
    this.#job = job
  }

  /** The item stands in the columns; the core has the last word. */
  #accept(id: string, line: number): void {
    this.#pending.push(this.#answers.length)
    this.#answers.push({ id, status: 'accepted' })
    this.#lines.push(line)
  }

  #submit(): void {
    if (columns.count === 0) return
    const { codes, retryAfterMs } = this.target.submit(this.#job, columns.block(this.#job.number))
    columns.clear()
    this.#retryAfterMs = Math.max(this.#retryAfterMs, retryAfterMs)
    this.#pending.forEach((at, i) => {
      const id = this.#answers[at].id as string
      if (codes[i] === SUBMIT_ACCEPTED) this.#accepted += 1
      else if (codes[i] === SUBMIT_DUPLICATE) {
        this.#duplicate += 1
        this.#answers[at] = { id, status: 'duplicate' }
      } else this.#refuse(at, id, REFUSALS[codes[i]] ?? RESULTS_UNREAD)
      if (codes[i] === SUBMIT_QUEUE_FULL) this.#full = true
    })
    this.#pending = []
  }

  #refuse(at: number, id: string | null, error: ErrorBody): void {
    this.#refused += 1
    const line = this.#lines[at]
    const answer = { ...error, ...(line === 0 ? {} : { line }) }
    this.#answers[at] = { id, status: 'refused', error: answer }
  }
}

/** The id of an item that was refused before it was known to be one. */
function idOf(raw: RawItem): string | null {
  try {
    const { id } = raw.parse() as { id?: unknown }
    return typeof id === 'string' ? id : null
  } catch {
    return null
  }
}

/** The error with the field's path from the body: `items[3].tokens`. */
function withPlace(error: FabricError, raw: RawItem): ErrorBody {
  const { code, message, field = '' } = error.toBody()
  const path = [raw.path, field].filter((part) => part !== '').join('.')
  return { code, message, ...(path === '' ? {} : { field: path }) }
}
