// A store in memory, as slow and plain as can be: what the core's disk mode is tested against.

import type { Core } from '../src/core.js'
import type { Effect } from '../src/effects.js'
import type { CoreEvent } from '../src/events.js'
import {
  type LoadedBlock,
  type RestoredJob,
  SUBMIT_ACCEPTED,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
} from '../src/submission.js'
import { block } from './helpers.js'

export interface StoredItem {
  readonly sequence: number
  readonly id: string
  readonly job: number
  readonly model: number
  readonly length: number
  readonly acceptedAt?: number
}

interface StoredJob {
  readonly weight: number
  readonly maxWaitMs: number | undefined
  flushed: boolean
  ended: boolean
  /** All that was ever accepted: ids are known for the life of the job (S36). */
  readonly ids: Set<string>
  readonly settled: Record<string, number>
}

export class ModelStore {
  /** Unsettled items, in the order of their numbers. */
  readonly items = new Map<number, StoredItem>()
  readonly jobs = new Map<number, StoredJob>()
  private readonly read = new Set<number>()
  lastSequence = 0
  /** Age counts from the broker's last start (S16). */
  startedAt = 0

  constructor() {
    this.createJob(0)
  }

  createJob(job: number, weight = 1, maxWaitMs?: number): void {
    this.jobs.set(job, {
      weight,
      maxWaitMs,
      flushed: false,
      ended: false,
      ids: new Set(),
      settled: {},
    })
  }

  deleteJob(job: number): void {
    for (const item of this.items.values()) if (item.job === job) this.items.delete(item.sequence)
    this.jobs.delete(job)
    if (job === 0) this.createJob(0)
  }

  /** Keeps what is new, and says so item by item; items without a number are refused already. */
  append(items: readonly StoredItem[]): Uint8Array {
    return Uint8Array.from(items, (item) => {
      const job = this.jobs.get(item.job)
      if (item.sequence === 0 || job === undefined) return SUBMIT_QUEUE_FULL
      if (job.ids.has(item.id)) return SUBMIT_DUPLICATE
      job.ids.add(item.id)
      this.items.set(item.sequence, item)
      this.lastSequence = item.sequence
      return SUBMIT_ACCEPTED
    })
  }

  /** The job's next items of the shape that were not read since the start; null at the end. */
  load(job: number, model: number, paddedLength: number, tokens: number): LoadedBlock | null {
    const found: StoredItem[] = []
    let taken = 0
    for (const item of this.items.values()) {
      if (this.read.has(item.sequence) || item.job !== job || item.model !== model) continue
      if (Math.ceil(item.length / 8) * 8 !== paddedLength) continue
      found.push(item)
      this.read.add(item.sequence)
      taken += item.length
      if (taken >= tokens) break
    }
    if (found.length === 0) return null
    return {
      block: block(found, job),
      sequences: Float64Array.from(found, (item) => item.sequence),
      acceptedAt: Float64Array.from(found, (item) =>
        Math.max(this.startedAt, item.acceptedAt ?? 0),
      ),
    }
  }

  settle(sequence: number, job: number, status: string): void {
    this.items.delete(sequence)
    const settled = this.jobs.get(job)?.settled
    if (settled !== undefined) settled[status] = (settled[status] ?? 0) + 1
  }

  /** What a shell does with the store once the core has said what came of an event. */
  keep({ items }: Core, event: CoreEvent, effects: readonly Effect[]): void {
    if (event.type === 'createJob') this.createJob(event.job, event.weight, event.maxWaitMs)
    if (event.type === 'flush') {
      for (const [id, job] of this.jobs)
        if (event.job === null || event.job === id) job.flushed = true
    }
    for (const effect of effects) {
      if (effect.type === 'jobEnded') this.jobs.get(effect.job)!.ended = true
      if (effect.type === 'reopened') this.jobs.get(effect.job)!.flushed = false
      if (effect.type === 'submitted' && effect.accepted > 0)
        this.jobs.get(effect.job)!.flushed = false
      if (effect.type !== 'settle') continue
      effect.items.forEach((slot, i) => {
        this.settle(items.sequence(slot), items.job(slot), effect.status[i])
      })
    }
    if (event.type === 'deleteJob') this.deleteJob(event.job)
  }

  /** What a broker that starts anew is told. */
  restored(): RestoredJob[] {
    this.read.clear()
    return Array.from(this.jobs, ([job, { weight, maxWaitMs, flushed, ended, settled }]) => ({
      job,
      weight,
      maxWaitMs,
      flushed,
      ended,
      settled: { ...settled },
      unreadResultBytes: 0,
      shapes: this.shapesOf(job),
    }))
  }

  private shapesOf(job: number): RestoredJob['shapes'] {
    const shapes = new Map<
      string,
      { model: number; paddedLength: number; items: number; tokens: number }
    >()
    for (const item of this.items.values()) {
      if (item.job !== job) continue
      const paddedLength = Math.ceil(item.length / 8) * 8
      const key = `${item.model}:${paddedLength}`
      const shape = shapes.get(key) ?? { model: item.model, paddedLength, items: 0, tokens: 0 }
      shape.items++
      shape.tokens += item.length
      shapes.set(key, shape)
    }
    return [...shapes.values()]
  }
}
