// Results that consumers finished for a lease of an earlier life (S26). The store says of which unsettled
// item each is: one with the same id and the same body, so that whatever was computed of the one holds
// for the other.
import type { CoreEvent, EarlierResult } from '@fabric/core'
import { type EarlierResults as Message, Outcome } from '@fabric/protocol'
import type { Job } from '../jobs.js'
import type { ResultRecord } from '../results/log.js'
import { sentValue } from '../settlement.js'
import type { LoadedItems } from '../storage/store.js'
import type { EarlyEnds } from './early-ends.js'
import type { DurableHost } from './host.js'

/** Jobs in which an id is looked for, newest first: most brokers work on a few. */
const JOBS_MAX = 64

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
    const { results } = message
    const jobs = this.#candidates()
    const found = await Promise.all(
      Array.from({ length: results.count }, (_, i) => this.#find(message, i, jobs)),
    )
    const known = new Set(Array.from(this.host.jobs, ({ number }) => number))
    const items: EarlierResult[] = []
    const unknown: number[] = []
    found.forEach((item, i) => {
      if (item === null || !known.has(item.job)) {
        unknown.push(results.index[i])
        return
      }
      items.push(item)
      this.earlyEnds.give(item.sequence, recordOf(message, i, item.status))
    })
    const { batch } = results
    this.settle(results, { type: 'earlierResults', consumer, batch, items, unknown })
    this.host.story.earlierResults(items.length, unknown.length)
    for (const { sequence } of items) this.earlyEnds.takeBack(sequence)
  }

  #candidates(): readonly Job[] {
    const open = Array.from(this.host.jobs).filter((job) => job.accepted > job.settledItems)
    return open.reverse().slice(0, JOBS_MAX)
  }

  /** A wish to try again needs nothing: the item is there anyway. */
  async #find(message: Message, i: number, jobs: readonly Job[]): Promise<EarlierResult | null> {
    const outcome = message.results.outcome[i]
    if (outcome !== Outcome.completed && outcome !== Outcome.failed) return null
    const item = itemAt(message, i)
    for (const job of jobs) {
      if (job.deleted) continue
      const found = await this.host.store.findId(job.number, item.id)
      if (found === null || !isSame(found, message.model, item)) continue
      return {
        ...found.shape,
        job: job.number,
        sequence: found.sequences[0],
        length: item.length,
        index: message.results.index[i],
        status: outcome === Outcome.completed ? 'completed' : 'failed',
      }
    }
    return null
  }
}

function itemAt(message: Message, i: number): Item {
  const { lengths, idEnds, ids, payloadEnds, payloads } = message
  const payload = payloads.subarray(i === 0 ? 0 : payloadEnds[i - 1], payloadEnds[i])
  let start = 0
  for (let row = 0; row < i; row++) {
    const isPayload = payloadEnds[row] > (row === 0 ? 0 : payloadEnds[row - 1])
    if (!isPayload) start += lengths[row]
  }
  const end = payload.byteLength > 0 ? start : start + lengths[i]
  return {
    id: ids.subarray(i === 0 ? 0 : idEnds[i - 1], idEnds[i]),
    length: lengths[i],
    tokens: message.tokens.subarray(start, end),
    payload,
  }
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

function recordOf(message: Message, i: number, status: 'completed' | 'failed'): ResultRecord {
  const { encoding, value, truncatedTo } = sentValue(status, i, message.results)
  return { status, attempts: 1, truncatedTo, encoding, value, id: itemAt(message, i).id }
}
