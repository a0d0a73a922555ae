// What the shadow knows of items, batches and consumers.

import type { Contract } from '../../src/core-config.js'
import { MS } from '../helpers.js'
import type { WorkItem } from '../workload.js'

type ItemState = 'queued' | 'reclaimed' | 'retrying' | 'grouped' | 'leased' | 'settled'

export interface ShadowItem {
  readonly id: string
  readonly model: number
  readonly length: number
  readonly job: number
  /** On disk, so that it outlives the broker. */
  readonly durable: boolean
  state: ItemState
  batch: number
  /** Times it came back, and when it is due (S28). */
  returns: number
  dueAt: number
  /** When it must have ended, or Infinity (S35). */
  readonly deadlineAt: number
  /** From when its wait counts, and its own bound of it, or 0 (S16). */
  acceptedAt: number
  readonly maxWaitMs: number
  /** Kills whoever takes it (S27). */
  readonly poison: boolean
  suspicion: Suspicion | null
}

/** What deaths have made of an item (S27), or the batch of which it is a half (S28). */
export interface Suspicion {
  readonly kind: 'suspect' | 'half'
  /** Items of the batch that was taken at the first death. */
  readonly firstSize: number
  deaths: number
  deathsAlone: number
  /** The batch it came back from: items of different ones are never merged. */
  batch: number
  lastConsumer: string
  lastDeathAt: number
}

export interface ShadowBatch {
  readonly number: number
  readonly consumer: number
  readonly items: readonly ShadowItem[]
  taken: boolean
  readonly group: boolean
  readonly suspect: boolean
  readonly tokens: number
  readonly reported: Set<number>
}

export interface ShadowConsumer {
  readonly id: number
  readonly name: string
  readonly contract: Contract
  /** Less than the contract's for a while after it ran out of memory (S28). */
  tokens: number
  reducedLeft: number
  draining: boolean
  hasRoom: boolean
  silent: boolean
  heardAt: number
  /** Since when it could take a batch and has not, or -1 (S24). */
  couldTakeSince: number
  readonly channel: ShadowBatch[]
  readonly inFlight: ShadowBatch[]
}

export function suspicion(kind: Suspicion['kind'], batch: ShadowBatch): Suspicion {
  return {
    kind,
    firstSize: batch.items.length,
    deaths: 0,
    deathsAlone: 0,
    batch: batch.number,
    lastConsumer: '',
    lastDeathAt: 0,
  }
}

/** The item as it was submitted; a replayed one has no deadline, and is in memory. */
export function fresh(item: ShadowItem): ShadowItem {
  return {
    ...item,
    durable: false,
    state: 'queued',
    batch: 0,
    returns: 0,
    dueAt: 0,
    deadlineAt: Number.POSITIVE_INFINITY,
    maxWaitMs: 0,
    suspicion: null,
  }
}

/** An item as it is when it is submitted at `now`. */
export function submittedItem(
  { id, model, length, maxWaitMs, deadlineMs, poison }: WorkItem,
  job: number,
  durable: boolean,
  now: number,
): ShadowItem {
  return {
    id: `m${id}`,
    model,
    length,
    job,
    durable,
    state: 'queued',
    batch: 0,
    returns: 0,
    acceptedAt: now,
    maxWaitMs: maxWaitMs ?? 0,
    dueAt: 0,
    deadlineAt: deadlineMs === undefined ? Number.POSITIVE_INFINITY : now + deadlineMs * MS,
    poison: poison === true,
    suspicion: null,
  }
}
