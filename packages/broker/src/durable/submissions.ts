// Durable submissions: numbered by the core, kept by the store, and only then told to the producer.
// Many requests are under way at once; the store lets all that come in one turn share a sync.
import {
  type Effect,
  type StoredItems,
  SUBMIT_ACCEPTED,
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
  SUBMIT_RESULTS_UNREAD,
  type SubmitBlock,
} from '@fabric/core'
import { FabricError } from '@fabric/protocol'
import { NS_PER_MS } from '../clock.js'
import type { Job } from '../jobs.js'
import { ByteBudget } from './byte-budget.js'
import type { DurableHost } from './host.js'

/** Items handed to the store and not yet synced. A slow disk slows producers, not the loop. */
export const APPEND_BYTES_MAX = 64 * 1024 * 1024

type Admitted = Extract<Effect, { type: 'admitted' }>

export class Submissions {
  readonly #budget = new ByteBudget(APPEND_BYTES_MAX)
  /** The last append asked for: a duplicate is told when what it repeats is durable. */
  #last: Promise<unknown> = Promise.resolve()
  #underWay = 0

  constructor(readonly host: DurableHost) {}

  get bytesUnderWay(): number {
    return this.#budget.usedBytes
  }

  get underWay(): number {
    return this.#underWay
  }

  room(): Promise<void> {
    return this.#budget.room()
  }

  /**
   * Resolves with the last word on each item once what was accepted is durable.
   * @throws FabricError FABRIC_DISK_FULL, FABRIC_DISK_FAILED: nothing of the block is kept.
   */
  async keep(job: Job, block: SubmitBlock, admitted: Admitted): Promise<Uint8Array> {
    const { count } = block
    const items: Omit<StoredItems, 'codes'> = {
      job: job.number,
      model: block.model.slice(0, count),
      lengths: block.lengths.slice(0, count),
      sequences: admitted.sequences,
      deadlineAt: deadlinesOf(block, this.host.clock.now()),
      block: block.maxWaitMs == null ? null : copyOf(block),
    }
    // Where ids can't be looked up the refusal stands: tried again, they are.
    const known = isRefusedForRoom(admitted.codes)
      ? this.host.store.lookup(block).catch(() => null)
      : null
    const codes = admitted.codes.slice()
    if (admitted.accepted > 0) merge(codes, await this.#append(job, block, items))
    const found = await known
    if (found !== null) mergeKnown(codes, found)
    if (codes.includes(SUBMIT_DUPLICATE)) await this.#last
    return codes
  }

  async #append(job: Job, block: SubmitBlock, items: Omit<StoredItems, 'codes'>) {
    const bytes = bytesOf(block)
    this.#budget.add(bytes)
    this.#underWay += 1
    const acceptedAtMs = Date.now()
    const { sequences } = items
    const appended = this.host.store.append({ job: job.number, block, sequences, acceptedAtMs })
    this.#last = appended
    let codes = new Uint8Array(sequences.length).fill(SUBMIT_QUEUE_FULL)
    try {
      codes = Uint8Array.from(await appended)
      return codes
    } catch (error) {
      throw job.deleted ? new FabricError('FABRIC_NOT_FOUND', `job ${job.id} was deleted`) : error
    } finally {
      this.#underWay -= 1
      this.#budget.remove(bytes)
      const accepted = codes.reduce((sum, code) => sum + Number(code === SUBMIT_ACCEPTED), 0)
      if (!job.deleted) job.accepted += accepted
      this.host.run({ type: 'stored', items: { ...items, codes } })
    }
  }
}

function deadlinesOf({ deadlineMs }: SubmitBlock, now: number): Float64Array | null {
  if (deadlineMs == null) return null
  return Float64Array.from(deadlineMs, (ms) => (ms === 0 ? 0 : now + ms * NS_PER_MS))
}

/** Of a borrowed block, whose columns go on in larger buffers. */
function copyOf(block: SubmitBlock): SubmitBlock {
  const { count, maxWaitMs } = block
  return {
    job: block.job,
    count,
    model: block.model.slice(0, count),
    lengths: block.lengths.slice(0, count),
    tokens: block.tokens.slice(),
    ids: block.ids.slice(0, block.idEnds[count - 1]),
    idEnds: block.idEnds.slice(0, count),
    payloads: block.payloads?.slice() ?? null,
    payloadEnds: block.payloadEnds?.slice(0, count) ?? null,
    maxWaitMs: maxWaitMs?.slice(0, count) ?? null,
  }
}

function isRefusedForRoom(codes: Uint8Array): boolean {
  return codes.includes(SUBMIT_QUEUE_FULL) || codes.includes(SUBMIT_RESULTS_UNREAD)
}

/** What the core admitted the store has the last word on. */
function merge(codes: Uint8Array, stored: Uint8Array): void {
  for (let i = 0; i < codes.length; i++) if (codes[i] === SUBMIT_ACCEPTED) codes[i] = stored[i]
}

/** A known id needs no room (S34). */
function mergeKnown(codes: Uint8Array, known: Uint8Array): void {
  for (let i = 0; i < codes.length; i++) {
    const isKnown = known[i] === SUBMIT_DUPLICATE || known[i] === SUBMIT_CONFLICT
    if (isKnown && (codes[i] === SUBMIT_QUEUE_FULL || codes[i] === SUBMIT_RESULTS_UNREAD))
      codes[i] = known[i]
  }
}

function bytesOf({ count, tokens, idEnds, payloadEnds }: SubmitBlock): number {
  if (count === 0) return 0
  return 4 * tokens.length + idEnds[count - 1] + (payloadEnds?.[count - 1] ?? 0)
}
