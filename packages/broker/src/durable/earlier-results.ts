// Results that consumers finished for a lease of an earlier life (S26). The store says of which unsettled
// item each is: one with the same id and the same body, so that whatever was computed of the one holds
// for the other.
import type { CoreEvent, EarlierResult } from '@fabric/core'
import { type EarlierResults as Message, Outcome } from '@fabric/protocol'
import type { Job } from '../jobs.js'
import { sentValue } from '../settlement.js'
import type { LoadedItems } from '../storage/store.js'
import type { EarlyEnds } from './early-ends.js'
import type { DurableHost } from './host.js'

/** Jobs in which an id is looked for, newest first: most brokers work on a few. */
const JOBS_MAX = 64

const ITEMS_AT_ONCE = 256

type Found = Omit<EarlierResult, 'index'>

interface Item {
  readonly id: Uint8Array
  readonly length: number
  readonly tokens: Int32Array
  readonly payload: Uint8Array
}

export class EarlierResults {
  readonly #underWay = new Set<Promise<void>>()

  constructor(
    readonly host: DurableHost,
    readonly earlyEnds: EarlyEnds,
    /** One step of the core, in which the message can be read. */
    readonly settle: (message: Message['results'], event: CoreEvent) => void,
  ) {}

  get isIdle(): boolean {
    return this.#underWay.size === 0
  }

  take(consumer: number, message: Message): void {
    const taken = this.#take(consumer, message)
      .catch((error) => this.host.story.readFailed(error))
      .finally(() => this.#underWay.delete(taken))
    this.#underWay.add(taken)
  }

  async #take(consumer: number, message: Message): Promise<void> {
    const { results, model } = message
    const entries = itemsOf(message)
    const found = await this.#findAll(model, entries, results.outcome)
    const known = new Set(Array.from(this.host.jobs, ({ number }) => number))
    const items: EarlierResult[] = []
    const unknown: number[] = []
    found.forEach((item, i) => {
      const index = results.index[i]
      if (item === null || !known.has(item.job)) {
        unknown.push(index)
        return
      }
      items.push({ ...item, index })
      const sent = sentValue(item.status, i, results)
      const record = { ...sent, status: item.status, attempts: 1, id: entries[i].id }
      this.earlyEnds.give(item.sequence, record)
    })
    const { batch } = results
    this.settle(results, { type: 'earlierResults', consumer, batch, items, unknown })
    this.host.story.earlierResults(items.length, unknown.length)
    for (const { sequence } of items) this.earlyEnds.takeBack(sequence)
  }

  /** Some at a time, so that the store has other work in between. */
  async #findAll(
    model: number,
    items: readonly Item[],
    outcome: Uint8Array,
  ): Promise<(Found | null)[]> {
    const jobs = this.#candidates()
    const found: (Found | null)[] = []
    for (let from = 0; from < items.length; from += ITEMS_AT_ONCE) {
      const part = items.slice(from, from + ITEMS_AT_ONCE)
      const asked = part.map((item, i) => this.#find(model, item, outcome[from + i], jobs))
      found.push(...(await Promise.all(asked)))
    }
    return found
  }

  #candidates(): readonly Job[] {
    const open = Array.from(this.host.jobs).filter((job) => job.accepted > job.settledItems)
    return open.reverse().slice(0, JOBS_MAX)
  }

  /** A wish to try again needs nothing: the item is there anyway. */
  async #find(
    model: number,
    item: Item,
    outcome: number,
    jobs: readonly Job[],
  ): Promise<Found | null> {
    if (outcome !== Outcome.completed && outcome !== Outcome.failed) return null
    for (const job of jobs) {
      if (job.deleted) continue
      const found = await this.host.store.findId(job.number, item.id)
      if (found === null || !isSame(found, model, item)) continue
      const status = outcome === Outcome.completed ? 'completed' : 'failed'
      const [sequence] = found.sequences
      return { ...found.shape, job: job.number, sequence, length: item.length, status }
    }
    return null
  }
}

function itemsOf(message: Message): Item[] {
  const { lengths, idEnds, ids, payloadEnds, payloads, tokens } = message
  let at = 0
  return Array.from(lengths, (length, i) => {
    const payload = payloads.subarray(i === 0 ? 0 : payloadEnds[i - 1], payloadEnds[i])
    const start = at
    if (payload.byteLength === 0) at += length
    return {
      id: ids.subarray(i === 0 ? 0 : idEnds[i - 1], idEnds[i]),
      length,
      tokens: tokens.subarray(start, at),
      payload,
    }
  })
}

/** The whole body is compared: another job may use the same ids for other items. */
function isSame({ shape, block }: LoadedItems, model: number, item: Item): boolean {
  const payload = block.payloads ?? new Uint8Array(0)
  return (
    shape.model === model &&
    block.lengths[0] === item.length &&
    Buffer.compare(bytesOf(block.tokens), bytesOf(item.tokens)) === 0 &&
    Buffer.compare(payload, item.payload) === 0
  )
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Int32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength)
