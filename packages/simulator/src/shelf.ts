// The disk tier as a simulation knows it: what it holds survives a restart, and reading it takes no
// time. It answers the core as the broker's store does (storage modes, S26, S36).
//
// Ids and waiting items stand in memory here, one object each: disk mode is for scenarios, not for
// traces of ten million.
import {
  DISK_ROUND_TO,
  type Effect,
  type LoadedBlock,
  type RestoredJob,
  type SettledStatus,
  type StoredItems,
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  type SubmitBlock,
} from '@fabric/core'

interface ShelvedItem {
  readonly sequence: number
  readonly id: string
  readonly model: number
  readonly length: number
  readonly acceptedAt: number
}

class ShelvedJob {
  flushed = false
  ended = false
  /** Of all that was ever accepted: model and length, which are all that a simulated body has. */
  readonly bodies = new Map<string, string>()
  readonly settled: Partial<Record<SettledStatus, number>> = {}
  /** Unsettled, by number: in the order of acceptance. */
  readonly items = new Map<number, ShelvedItem>()
  /** By shape: what was not read in this life of the broker. */
  unread = new Map<string, ShelvedItem[]>()

  constructor(
    readonly weight: number,
    readonly maxWaitMs?: number,
  ) {}
}

const padded = (length: number): number => Math.ceil(length / DISK_ROUND_TO) * DISK_ROUND_TO
const shapeOf = (model: number, paddedLength: number): string => `${model}:${paddedLength}`

export class Shelf {
  #lastSequence = 0
  readonly #jobs = new Map<number, ShelvedJob>([[0, new ShelvedJob(1)]])

  createJob(job: number, weight: number, maxWaitMs?: number): void {
    this.#jobs.set(job, new ShelvedJob(weight, maxWaitMs))
  }

  /** Items that a restart does not lose. */
  get unsettled(): number {
    let items = 0
    for (const job of this.#jobs.values()) items += job.items.size
    return items
  }

  flush(job: number): void {
    this.#job(job).flushed = true
  }

  reopen(job: number): void {
    this.#job(job).flushed = false
    this.#job(job).ended = false
  }

  end(job: number): void {
    this.#job(job).ended = true
  }

  /** Keeps what the core admitted and whose id is new; answers what the core is told of it. */
  store(
    block: SubmitBlock,
    { codes: admitted, sequences }: Extract<Effect, { type: 'admitted' }>,
    now: number,
  ): StoredItems {
    const job = this.#job(block.job)
    const codes = Uint8Array.from(admitted)
    const text = Buffer.from(block.ids.buffer, block.ids.byteOffset, block.ids.byteLength)
    for (let i = 0; i < block.count; i++) {
      if (sequences[i] === 0) continue
      const id = text.toString('utf8', i === 0 ? 0 : block.idEnds[i - 1], block.idEnds[i])
      const [model, length] = [block.model[i], block.lengths[i]]
      const body = `${model}:${length}`
      const known = job.bodies.get(id)
      if (known === undefined) {
        job.bodies.set(id, body)
        this.#keep(job, { sequence: sequences[i], id, model, length, acceptedAt: now })
      } else codes[i] = known === body ? SUBMIT_DUPLICATE : SUBMIT_CONFLICT
    }
    return {
      job: block.job,
      model: block.model.slice(0, block.count),
      lengths: block.lengths.slice(0, block.count),
      sequences,
      codes,
      block: block.maxWaitMs == null ? null : block,
    }
  }

  #keep(job: ShelvedJob, item: ShelvedItem): void {
    this.#lastSequence = item.sequence
    job.items.set(item.sequence, item)
    this.#putUnread(job, item)
  }

  #putUnread(job: ShelvedJob, item: ShelvedItem): void {
    const shape = shapeOf(item.model, padded(item.length))
    const unread = job.unread.get(shape)
    if (unread === undefined) job.unread.set(shape, [item])
    else unread.push(item)
  }

  /** The next items of a job and shape that were not read in this life; null when there are none. */
  load({ job: id, model, paddedLength, tokens }: Extract<Effect, { type: 'load' }>) {
    const job = this.#job(id)
    const shape = shapeOf(model, paddedLength)
    const unread = job.unread.get(shape) ?? []
    let taken = 0
    let count = 0
    while (count < unread.length && taken < tokens) taken += unread[count++].length
    // What has settled since by a late result is not brought again.
    const items = unread.splice(0, count).filter(({ sequence }) => job.items.has(sequence))
    return items.length === 0 ? null : loadedBlock(id, items)
  }

  settle(job: number, sequence: number, status: SettledStatus): void {
    const shelved = this.#job(job)
    if (!shelved.items.delete(sequence)) return
    shelved.settled[status] = (shelved.settled[status] ?? 0) + 1
  }

  /** What a broker that starts anew is told. */
  restored(): { lastSequence: number; jobs: RestoredJob[] } {
    const jobs = [...this.#jobs].map(([job, shelved]) => {
      shelved.unread = new Map()
      for (const item of shelved.items.values()) this.#putUnread(shelved, item)
      const { weight, maxWaitMs, flushed, ended, settled } = shelved
      const shapes = [...shelved.unread.values()].map((items) => ({
        model: items[0].model,
        paddedLength: padded(items[0].length),
        items: items.length,
        tokens: items.reduce((sum, { length }) => sum + length, 0),
      }))
      const counts = { ...settled }
      const said = { job, weight, maxWaitMs, flushed, ended }
      return { ...said, settled: counts, unreadResultBytes: 0, shapes }
    })
    return { lastSequence: this.#lastSequence, jobs }
  }

  #job(id: number): ShelvedJob {
    return this.#jobs.get(id)!
  }
}

function loadedBlock(job: number, items: readonly ShelvedItem[]): LoadedBlock {
  const ids = items.map(({ id }) => Buffer.from(id))
  let end = 0
  return {
    block: {
      job,
      count: items.length,
      model: Int32Array.from(items, ({ model }) => model),
      lengths: Int32Array.from(items, ({ length }) => length),
      tokens: new Int32Array(0),
      ids: Buffer.concat(ids),
      idEnds: Uint32Array.from(ids, (id) => {
        end += id.length
        return end
      }),
      payloads: null,
      payloadEnds: null,
    },
    sequences: Float64Array.from(items, ({ sequence }) => sequence),
    acceptedAt: Float64Array.from(items, ({ acceptedAt }) => acceptedAt),
  }
}
