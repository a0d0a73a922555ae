// What the tests of the core share: a configuration, blocks of items, and a bench that steps.

import { Core } from '../src/core.js'
import type { Contract, CoreConfig } from '../src/core-config.js'
import type { DispatchEffect, Effect } from '../src/effects.js'
import { type CoreEvent, RESULT_COMPLETED } from '../src/events.js'
import type { SubmitBlock } from '../src/submission.js'

export const MS = 1_000_000
export const LIFE = 0x1234_5678_9abc_def0n

export function config(over: Partial<CoreConfig> = {}): CoreConfig {
  return {
    mode: 'memory',
    readAheadTokens: 1_000_000,
    roundTo: 8,
    lengthClasses: [],
    overtakeLimit: 1000,
    budgetRule: 'padded',
    readyRule: 'full-batch',
    spanWaste: [0],
    serve: 'next',
    channelDepth: 2,
    laneOrder: 'round-robin',
    affinityRun: 16,
    activationThreshold: null,
    releaseThreshold: 0,
    gateOpensOn: 'any',
    gateMaxHoldMs: 30_000,
    maxWaitMs: 0,
    starveBatches: 0,
    laneIdleMs: 30_000,
    cleanupIdleMs: 50,
    cleanupMerge: true,
    leaseTimeoutMs: 30_000,
    leaseMaxMs: 3_600_000,
    retryDelayMs: 100,
    maxAttempts: 5,
    maxDeliveries: 20,
    poisonDeaths: 2,
    maxQuarantinedItems: 1000,
    maxBatchBytes: 8 * 1024 * 1024,
    maxQueuedItems: 1_000_000,
    maxQueuedTokens: 100_000_000,
    maxItemBytes: 1024 * 1024,
    maxUnreadResultBytes: 1024 * 1024 * 1024,
    resultsTtlMs: 86_400_000,
    brokerLife: LIFE,
    hashSeed: 7,
    ...over,
  }
}

/** The design's table of departures, taken back. */
export const asPublished: Partial<CoreConfig> = {
  readyRule: 'batch-size',
  spanWaste: [0],
  serve: 'first',
  gateOpensOn: 'threshold',
  gateMaxHoldMs: 0,
  maxWaitMs: 0,
  starveBatches: 0,
  cleanupIdleMs: 0,
  cleanupMerge: false,
}

export function contract(over: Partial<Contract> = {}): Contract {
  return {
    batchSize: 8,
    tokens: 64,
    inputLength: 512,
    model: 1,
    layout: 'padded',
    roundTo: 8,
    maxInFlight: 1,
    ...over,
  }
}

export interface ItemSpec {
  readonly id: string
  readonly length: number
  readonly model?: number
  readonly payload?: Uint8Array
  /** First token; the others follow. */
  readonly token?: number
  readonly deadlineMs?: number
  readonly maxWaitMs?: number
}

const encoder = new TextEncoder()

export function block(items: readonly ItemSpec[], job = 0): SubmitBlock {
  const ids = items.map((item) => encoder.encode(item.id))
  const payloads = items.map((item) => item.payload ?? new Uint8Array(0))
  const tokens = new Int32Array(
    items.reduce((sum, item) => sum + (item.payload === undefined ? item.length : 0), 0),
  )
  let at = 0
  for (const { payload, length, token = 0 } of items) {
    for (let i = 0; payload === undefined && i < length; i++) tokens[at++] = token + i
  }
  return {
    job,
    count: items.length,
    model: Int32Array.from(items, (item) => item.model ?? 1),
    lengths: Int32Array.from(items, (item) => item.length),
    tokens,
    ids: concat(ids),
    idEnds: ends(ids),
    deadlineMs: Int32Array.from(items, (item) => item.deadlineMs ?? 0),
    maxWaitMs: Int32Array.from(items, (item) => item.maxWaitMs ?? 0),
    payloads: items.some((item) => item.payload !== undefined) ? concat(payloads) : null,
    payloadEnds: items.some((item) => item.payload !== undefined) ? ends(payloads) : null,
  }
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

function ends(parts: readonly Uint8Array[]): Uint32Array {
  let at = 0
  return Uint32Array.from(parts, (part) => {
    at += part.length
    return at
  })
}

/** A dispatch as plain values, with item ids instead of slots. */
export interface Sent {
  readonly batch: number
  readonly consumer: number
  readonly ids: readonly string[]
  readonly effect: DispatchEffect
}

type Kind<T extends Effect['type']> = Extract<Effect, { type: T }>

/** Steps a core, remembers its effects, and reads ids while they can be read. */
export class Bench {
  readonly core: Core
  now = 0
  readonly effects: Effect[] = []
  readonly sent: Sent[] = []
  /** `id:status` in the order of settlement. */
  readonly settled: string[] = []
  private named = 0

  constructor(over: Partial<CoreConfig> = {}) {
    this.core = new Core(config(over))
  }

  /** One event, then dispatch until nothing comes back. */
  do(event: CoreEvent): readonly Effect[] {
    return [...this.only(event), ...this.dispatch()]
  }

  only(event: CoreEvent): readonly Effect[] {
    const effects = this.core.step(event, this.now)
    for (const effect of effects) this.note(effect)
    return effects
  }

  dispatch(): readonly Effect[] {
    const all: Effect[] = []
    for (;;) {
      const effects = this.only({ type: 'dispatch' })
      all.push(...effects)
      if (!effects.some((effect) => effect.type === 'dispatch')) return all
    }
  }

  register(consumer: number, over: Partial<Contract> = {}): readonly Effect[] {
    return this.do({ type: 'register', consumer, name: `gpu${consumer}`, contract: contract(over) })
  }

  /** Submits items of the given lengths; ids are i0, i1, … unless specs are given. */
  submit(items: readonly (number | ItemSpec)[], job = 0): readonly Effect[] {
    return this.do({ type: 'submit', block: block(this.specs(items), job) })
  }

  specs(items: readonly (number | ItemSpec)[]): ItemSpec[] {
    return items.map((item) =>
      typeof item === 'number' ? { id: `i${this.named++}`, length: item } : item,
    )
  }

  /** Takes a batch and dies of it. */
  die(sent: Sent): readonly Effect[] {
    this.taken(sent)
    return this.do({ type: 'disconnect', consumer: sent.consumer, cause: 'connection_closed' })
  }

  /** Ends items of a job by their ids, as a producer asks for it. */
  cancel(ids: readonly string[], job = 0): readonly Effect[] {
    const { slots, numbers } = this.core.find(
      job,
      ids.map((id) => encoder.encode(id)),
    )
    return this.do({ type: 'cancel', slots, numbers })
  }

  slotOf(id: string, job = 0): number {
    return this.core.find(job, [encoder.encode(id)]).slots[0]
  }

  /** Moves time on, firing each timer at its time, and ticks at the end: counts are of a step. */
  advance(ms: number): void {
    const end = this.now + ms * MS
    for (;;) {
      const at = this.core.nextTimerAt()
      if (at > end) break
      this.now = Math.max(this.now, at)
      this.do({ type: 'tick' })
    }
    this.now = end
    this.do({ type: 'tick' })
  }

  taken(sent: Sent): readonly Effect[] {
    return this.do({ type: 'taken', consumer: sent.consumer, batch: sent.batch })
  }

  results(sent: Sent, outcomes: readonly number[], over: Partial<CoreEvent> = {}) {
    return this.do({
      type: 'results',
      consumer: sent.consumer,
      brokerLife: LIFE,
      batch: sent.batch,
      index: Uint32Array.from(outcomes, (_, index) => index),
      outcome: Uint8Array.from(outcomes),
      ...over,
    } as CoreEvent)
  }

  /** Takes a batch and completes all of it. */
  complete(sent: Sent): readonly Effect[] {
    this.taken(sent)
    return this.results(sent, Array(sent.ids.length).fill(RESULT_COMPLETED))
  }

  /** Completes batches, oldest first, until none comes any more. */
  completeAll(): void {
    let done = 0
    while (done < this.sent.length) this.complete(this.sent[done++])
  }

  /** Completes batches, one a millisecond, until `until` is true of one; answers how many came before it. */
  workUntil(until: (sent: Sent) => boolean, most: number): number {
    for (let done = 0; done < most; done++) {
      const sent = this.sent[done]
      if (sent === undefined) throw new Error(`nothing left after ${done} batches`)
      if (until(sent)) return done
      this.complete(sent)
      this.advance(1)
    }
    throw new Error(`not within ${most} batches`)
  }

  of<T extends Effect['type']>(type: T): Kind<T>[] {
    return this.effects.filter((effect): effect is Kind<T> => effect.type === type)
  }

  id(slot: number): string {
    const at = this.core.items.idOffset(slot)
    const bytes = this.core.items.segmentBytes(slot)
    return new TextDecoder().decode(bytes.subarray(at, at + this.core.items.idBytes(slot)))
  }

  private note(effect: Effect): void {
    this.effects.push(effect)
    if (effect.type === 'dispatch') {
      const ids = [...effect.items].map((slot) => this.id(slot))
      this.sent.push({ batch: effect.batch, consumer: effect.consumer, ids, effect })
    }
    if (effect.type === 'settle') {
      effect.items.forEach((slot, i) => {
        this.settled.push(`${this.id(slot)}:${effect.status[i]}`)
      })
    }
  }
}
