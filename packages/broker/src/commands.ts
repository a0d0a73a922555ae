// What an operator or a producer may do to items that are here: look at one, cancel some, cancel or
// pause a job, replay or delete what is quarantined, drain a consumer.
//
// Items are found by a pass over the core's table, in parts: other work goes on in between.
import {
  type CoreEvent,
  type Effect,
  type FoundItems,
  type ItemFacts,
  type ItemView,
  type QuarantinedItem,
  SUBMIT_ACCEPTED,
  SUBMIT_QUEUE_FULL,
} from '@fabric/core'
import { FabricError, type ItemInfo, type QuarantineEntry } from '@fabric/protocol'
import type { Durability } from './durable/durability.js'
import { explain } from './explain.js'
import type { Job, JobTable } from './jobs.js'

/** What the commands use of the core and of its engine. */
export interface CommandTarget {
  readonly items: ItemView
  readonly quarantined: ReadonlyMap<number, QuarantinedItem>
  find(job: number, ids: readonly Uint8Array[] | null, from?: number, rows?: number): FoundItems
  explain(slot: number): ItemFacts
  /** One step, and whatever it made possible. */
  command(event: CoreEvent): readonly Effect[]
  /** A quarantined item of the job was accepted anew. */
  replayed(job: number): void
  now(): number
  /** Null in memory mode. */
  readonly disk: Durability | null
}

/** Rows of the item table looked at in one turn of the loop: some milliseconds. */
const ROWS_AT_ONCE = 131_072
const encoder = new TextEncoder()
const decoder = new TextDecoder()
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

export class Commands {
  constructor(
    readonly target: CommandTarget,
    readonly jobs: JobTable,
  ) {}

  /** Null: the job has no such item that has not ended. */
  async item(job: Job, id: string): Promise<ItemInfo | null> {
    for await (const { slots } of this.#pass(job, [id])) {
      if (slots.length > 0) return this.#info(job, id, this.target.explain(slots[0]))
    }
    return this.#onDisk(job, id)
  }

  /** Cancels those that have not ended. Answers their ids. */
  async cancel(job: Job, ids: readonly string[]): Promise<string[]> {
    const cancelled: string[] = []
    for await (const { slots, numbers } of this.#pass(job, ids)) {
      for (const slot of slots) cancelled.push(this.#idOf(slot))
      this.target.command({ type: 'cancel', slots, numbers })
    }
    const known = new Set(cancelled)
    const rest = this.target.disk === null ? [] : ids.filter((id) => !known.has(id))
    for (const id of rest) if (await this.#cancelOnDisk(job, id)) cancelled.push(id)
    await this.target.disk?.earlyEnds.told()
    return cancelled
  }

  /** Read in the meantime, it is in memory now: then it is looked for there once more. */
  async #cancelOnDisk(job: Job, id: string): Promise<boolean> {
    const found = await this.target.disk!.host.store.findId(job.number, encoder.encode(id))
    if (found === null || job.deleted) return false
    const effects = this.target.command({
      type: 'cancelOnDisk',
      job: job.number,
      ...found.shape,
      sequences: [found.sequences[0]],
      lengths: [found.block.lengths[0]],
    })
    if (effects.some(({ type }) => type === 'endedOnDisk')) return true
    for await (const { slots, numbers } of this.#pass(job, [id])) {
      this.target.command({ type: 'cancel', slots, numbers })
      if (slots.length > 0) return true
    }
    return false
  }

  async #onDisk(job: Job, id: string): Promise<ItemInfo | null> {
    const store = this.target.disk?.host.store
    const found = await store?.findId(job.number, encoder.encode(id))
    if (store === undefined || found == null) return null
    const { shape, block, sequences, acceptedAtMs } = found
    const deadlineMs = block.deadlineMs?.[0] ?? 0
    const ageMs = Math.max(0, Date.now() - acceptedAtMs[0])
    const ahead = await store.countAhead(job.number, shape, sequences[0])
    return {
      id,
      job: job.id,
      model: shape.model,
      length: block.lengths[0],
      attempts: 0,
      deliveries: 0,
      ageMs,
      ...(deadlineMs === 0 ? {} : { expiresInMs: deadlineMs - ageMs }),
      state: 'on_disk',
      why: `${job.paused ? 'paused; ' : ''}on disk: ${ahead} ahead in its shape (${shape.paddedLength} tokens)`,
      facts: { state: 'on_disk', ahead, paddedLength: shape.paddedLength },
    }
  }

  /** Ends all items of a job that have not ended; nothing of it is dispatched in between. */
  async cancelAll(job: Job): Promise<void> {
    this.target.command({ type: 'pauseJob', job: job.number })
    let left = job.accepted - job.settledItems
    while (left > 0 && !job.deleted) {
      let ended = 0
      for await (const { slots, numbers } of this.#pass(job, null)) {
        this.target.command({ type: 'cancel', slots, numbers })
        ended += slots.length
      }
      left -= ended
      const { disk } = this.target
      if (disk === null || job.deleted) break
      // What is on disk alone has its turn, some at a time, as its results are kept.
      await disk.settlements.room()
      const effects = this.target.command({ type: 'readOut', job: job.number })
      if (ended === 0 && !effects.some(({ type }) => type === 'load')) break
      await disk.loads.answered(job.number)
    }
    if (!job.deleted) this.target.command({ type: 'resumeJob', job: job.number })
  }

  setPaused(job: Job, paused: boolean): void {
    job.paused = paused
    this.target.command({ type: paused ? 'pauseJob' : 'resumeJob', job: job.number })
  }

  quarantined(): QuarantineEntry[] {
    return Array.from(this.target.quarantined.values(), (entry) => this.#entry(entry))
  }

  /** @throws FabricError FABRIC_NOT_FOUND, FABRIC_QUEUE_FULL, FABRIC_RESULTS_UNREAD */
  replay(job: Job | null, ids: readonly string[] | null): number {
    const items = this.#select(job, ids)
    const jobs = items.map((item) => this.target.quarantined.get(item)!.job)
    let replayed = 0
    for (const effect of this.target.command({ type: 'replay', items })) {
      if (effect.type !== 'replayed') continue
      effect.items.forEach((_, i) => {
        if (effect.codes[i] !== SUBMIT_ACCEPTED) return
        replayed += 1
        this.target.replayed(jobs[i])
        this.target.disk?.quarantine?.replayed(effect.numbers[i], effect.items[i])
      })
      if (replayed === 0 && effect.codes.length > 0) throw refusal(effect.codes[0])
    }
    return replayed
  }

  /** @throws FabricError FABRIC_NOT_FOUND */
  discard(job: Job | null, ids: readonly string[] | null): number {
    const items = this.#select(job, ids)
    this.target.command({ type: 'discard', items })
    this.target.disk?.quarantine?.review()
    return items.length
  }

  #select(job: Job | null, ids: readonly string[] | null): number[] {
    const wanted = ids === null ? null : new Set(ids)
    const found: number[] = []
    for (const entry of this.target.quarantined.values()) {
      const isOfJob = job === null || entry.job === job.number
      if (isOfJob && wanted?.has(decoder.decode(entry.id)) !== false) found.push(entry.item)
    }
    if (found.length === 0 && ids !== null)
      throw new FabricError('FABRIC_NOT_FOUND', 'no such item is in quarantine', { field: 'ids' })
    return found
  }

  async *#pass(job: Job, ids: readonly string[] | null): AsyncGenerator<FoundItems> {
    const bytes = ids === null ? null : ids.map((id) => encoder.encode(id))
    for (let from = 0; from >= 0 && !job.deleted; ) {
      const found = this.target.find(job.number, bytes, from, ROWS_AT_ONCE)
      yield found
      from = found.next
      if (from >= 0) await nextTurn()
    }
  }

  #idOf(slot: number): string {
    const { items } = this.target
    const at = items.idOffset(slot)
    return decoder.decode(items.segmentBytes(slot).subarray(at, at + items.idBytes(slot)))
  }

  #info(job: Job, id: string, facts: ItemFacts): ItemInfo {
    const now = this.target.now()
    const { model, length, attempts, deliveries, acceptedAt, deadlineAt, why } = facts
    return {
      id,
      job: job.id,
      model,
      length,
      attempts,
      deliveries,
      ageMs: Math.round((now - acceptedAt) / 1e6),
      ...(deadlineAt === null ? {} : { expiresInMs: Math.round((deadlineAt - now) / 1e6) }),
      state: why.state,
      why: explain(why, model, now),
      facts: why,
    }
  }

  #entry(entry: QuarantinedItem): QuarantineEntry {
    const now = this.target.now()
    const wall = (ns: number) => new Date(Date.now() - (now - ns) / 1e6).toISOString()
    return {
      job: this.jobs.byNumber(entry.job).id,
      id: decoder.decode(entry.id),
      model: entry.model,
      length: entry.length,
      deliveries: entry.deliveries,
      quarantinedAt: wall(entry.quarantinedAt),
      deaths: entry.deaths.map(({ consumer, at, cause }) => ({ consumer, at: wall(at), cause })),
    }
  }
}

const refusal = (code: number): FabricError =>
  code === SUBMIT_QUEUE_FULL
    ? new FabricError('FABRIC_QUEUE_FULL', 'the queue is full')
    : new FabricError('FABRIC_RESULTS_UNREAD', 'the job has too many unread results')
