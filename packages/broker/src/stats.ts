// What the shell counts for itself, beside the core's counts: fills, closings, padding, assembly
// times. Plain numbers in the hot path; metrics and /v1/state read them when asked.

import {
  type ClosedBy,
  type DispatchEffect,
  type SettledStatus,
  type Source,
  SUBMIT_ACCEPTED,
  SUBMIT_CONFLICT,
  SUBMIT_DUPLICATE,
  SUBMIT_QUEUE_FULL,
  SUBMIT_RESULTS_UNREAD,
  SUBMIT_TOO_LARGE,
  type SubmitBlock,
} from '@fabric/core'
import type { RingState } from './channels/channel.js'
import { BucketHistogram } from './metrics/buckets.js'
import { RatioHistogram } from './metrics/ratio-histogram.js'
import { TimeHistogram } from './metrics/time-histogram.js'

type RingCounters = Pick<RingState, 'tailGapBytes' | 'claimRetries' | 'fulls'>

/** A producer may send any integer as a model; beyond so many they are counted as one. */
const MODELS_MAX = 1_000
const OTHER_MODELS = -1
/** Fills held back for `beforeTail`: consumers x (channelDepth + 1) at most. */
const TAIL_BATCHES_MAX = 65_536

const REJECT_REASONS: Readonly<Record<number, string>> = {
  [SUBMIT_CONFLICT]: 'id_conflict',
  [SUBMIT_TOO_LARGE]: 'too_large',
  [SUBMIT_QUEUE_FULL]: 'queue_full',
  [SUBMIT_RESULTS_UNREAD]: 'results_unread',
}

export class Stats {
  readonly submittedByModel = new Map<number, number>()
  readonly settledByModel = new Map<number, Record<SettledStatus, number>>()
  readonly rejected: Record<string, number> = {}
  duplicates = 0
  batches = 0
  items = 0
  normalBatches = 0
  normalItems = 0
  actualTokens = 0
  paddedTokens = 0
  bytes = 0
  readonly closedBy: Record<ClosedBy, number> = {
    token_limit: 0,
    item_limit: 0,
    byte_limit: 0,
    lane_empty: 0,
    alone: 0,
  }
  readonly normalClosedBy: Record<ClosedBy, number> = { ...this.closedBy }
  readonly source: Record<Source, number> = { reclaimed: 0, due: 0, disk: 0, lane: 0, staging: 0 }
  readonly fill = new RatioHistogram()
  readonly normalFill = new RatioHistogram()
  readonly fillBeforeTail = new RatioHistogram()
  readonly assembly = new TimeHistogram()
  readonly batchItems = new BucketHistogram([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096])
  /** Seconds from acceptance to dispatch. */
  readonly queueSeconds = new BucketHistogram([
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200,
  ])
  /** Of rings whose consumer is gone. */
  readonly #goneRings = { tailGapBytes: 0, claimRetries: 0, fulls: 0 }
  readonly #tail: number[] = []
  #tailAt = 0

  /** @param tailBatches consumers x (channelDepth + 1): the last so many are the tail. */
  recordDispatch(effect: DispatchEffect, padded: boolean, tailBatches: number): void {
    this.batches += 1
    this.items += effect.size
    this.actualTokens += effect.actualTokens
    this.paddedTokens += padded ? effect.size * effect.paddedLength : effect.actualTokens
    this.closedBy[effect.closedBy] += 1
    this.source[effect.source] += 1
    this.fill.record(effect.fill)
    this.batchItems.record(effect.size)
    this.#recordBeforeTail(effect.fill, tailBatches)
    if (!effect.normal) return
    this.normalBatches += 1
    this.normalItems += effect.size
    this.normalClosedBy[effect.closedBy] += 1
    this.normalFill.record(effect.fill)
  }

  /** @returns how many were accepted. */
  recordSubmit(block: Pick<SubmitBlock, 'count' | 'model'>, codes: Uint8Array): number {
    let accepted = 0
    // Items of a block mostly are of one model: counted in runs.
    let [model, run] = [block.model[0], 0]
    const refused = new Uint32Array(SUBMIT_RESULTS_UNREAD + 1)
    for (let i = 0; i < block.count; i++) {
      refused[codes[i]] += 1
      if (codes[i] !== SUBMIT_ACCEPTED) continue
      accepted += 1
      if (block.model[i] !== model) {
        add(this.submittedByModel, model, run)
        ;[model, run] = [block.model[i], 0]
      }
      run += 1
    }
    add(this.submittedByModel, model, run)
    this.duplicates += refused[SUBMIT_DUPLICATE]
    for (let code = SUBMIT_CONFLICT; code <= SUBMIT_RESULTS_UNREAD; code++)
      this.countRejected(REJECT_REASONS[code], refused[code])
    return accepted
  }

  countSettled(model: number, status: SettledStatus): void {
    const known = this.settledByModel.has(model) || this.settledByModel.size < MODELS_MAX
    const key = known ? model : OTHER_MODELS
    let counts = this.settledByModel.get(key)
    if (counts === undefined) {
      counts = { completed: 0, failed: 0, expired: 0, cancelled: 0, quarantined: 0 }
      this.settledByModel.set(key, counts)
    }
    counts[status] += 1
  }

  countRejected(reason: string, items: number): void {
    if (items > 0) this.rejected[reason] = (this.rejected[reason] ?? 0) + items
  }

  addRing(ring: RingCounters | null): void {
    if (ring !== null) addCounters(this.#goneRings, ring)
  }

  /** Over all rings there ever were. */
  ringTotals(live: readonly { readonly ring: RingCounters | null }[]): RingCounters {
    const totals = { ...this.#goneRings }
    for (const { ring } of live) if (ring !== null) addCounters(totals, ring)
    return totals
  }

  #recordBeforeTail(fill: number, tailBatches: number): void {
    this.#tail.push(fill)
    const held = Math.min(tailBatches, TAIL_BATCHES_MAX)
    while (this.#tail.length - this.#tailAt > held)
      this.fillBeforeTail.record(this.#tail[this.#tailAt++])
    if (this.#tailAt > TAIL_BATCHES_MAX) {
      this.#tail.splice(0, this.#tailAt)
      this.#tailAt = 0
    }
  }
}

function addCounters(totals: { -readonly [K in keyof RingCounters]: number }, ring: RingCounters) {
  totals.tailGapBytes += ring.tailGapBytes
  totals.claimRetries += ring.claimRetries
  totals.fulls += ring.fulls
}

function add(map: Map<number, number>, model: number, count: number): void {
  if (count === 0) return
  const key = map.has(model) || map.size < MODELS_MAX ? model : OTHER_MODELS
  map.set(key, (map.get(key) ?? 0) + count)
}
