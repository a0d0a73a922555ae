// What good means (design README): shuffled streams of texts' lengths, at load 1.25, until the input
// ends and the tail drains, beside the sorted set. With the options' own defaults.
//
// `short texts` are like dictionary entries: log-normal around 90, up to 512, at a budget of 16,384.
// `long texts` are like e-mail: around 400, up to 8,192, at 131,072: a thousand lanes, which need spans
// (S13a). On recorded lengths: `fabric simulate --compare`.

import { expect, it } from 'vitest'
import { Core } from '../src/core.js'
import type { DispatchEffect, Effect } from '../src/effects.js'
import type { CoreEvent } from '../src/events.js'
import { RULE_OPTIONS } from '../src/options.js'
import { config, contract, LIFE } from './helpers.js'
import { Random } from './random.js'

const DEPTH = 2
const US = 1000

const streams: readonly [string, Workload, { readonly waste: number; readonly isJob?: boolean }][] =
  [
    ['short texts, 2 consumers', shortTexts(160_000, 42, 2), { waste: 0.007 }],
    ['short texts, 4 consumers', shortTexts(160_000, 43, 4), { waste: 0.007 }],
    ['long texts, 4 consumers', longTexts(520_000, 45, 4), { waste: 0.007 }],
    ['a short job, 2 consumers', shortTexts(14_000, 46, 2), { waste: 0.025, isJob: true }],
  ]

it.each(streams)(
  'quality: %s: fill, waste, batches and idle share stand beside the sorted set',
  (name, workload, bound) => {
    const figures = measure(workload)
    console.log(
      `quality: ${name}:`,
      JSON.stringify(figures, (_, n) => (n % 1 ? Number(n.toFixed(4)) : n)),
    )
    expect(figures.left).toBe(0)
    expect(figures.waste).toBeLessThanOrEqual(figures.sortWaste + bound.waste)
    expect(figures.p1).toBeGreaterThanOrEqual(figures.sortP1 - 0.02)
    expect(figures.p50).toBeGreaterThanOrEqual(figures.sortP50 - 0.005)
    expect(figures.idle).toBeLessThanOrEqual(0.01)
    expect(figures.itemLimit).toBe(0)
    expect(figures.batches).toBeLessThanOrEqual(figures.sortBatches * 1.015 + 2)
    expect(figures.normalShare).toBeGreaterThanOrEqual(0.8)
    if (bound.isJob) return
    expect(figures.batches).toBeGreaterThan(1000)
    if (workload.longest > workload.budget / 16) return
    expect(Math.min(figures.p50, figures.p90, figures.p99)).toBeGreaterThanOrEqual(0.98)
  },
)

interface Workload {
  readonly lengths: readonly number[]
  readonly longest: number
  readonly budget: number
  readonly consumers: number
}

function measure(workload: Workload) {
  const { consumers } = workload
  const stream = new Stream(workload)
  stream.run()
  const sorted = sortReference(workload)
  const { batches } = stream
  const cut = batches.slice(0, batches.length - consumers * (DEPTH + 1))
  const fills = cut.map((batch) => batch.fill).sort((a, b) => a - b)
  const normal = batches.filter((batch) => batch.normal)
  const streamed = batches.slice(0, stream.batchesAtEnd)
  return {
    left: stream.left(),
    batches: batches.length,
    sortBatches: sorted.batches,
    waste: wasteOf(batches),
    sortWaste: sorted.waste,
    p1: rank(fills, 0.01),
    p50: rank(fills, 0.5),
    p90: rank(fills, 0.9),
    p99: rank(fills, 0.99),
    sortP1: rank(sorted.fills, 0.01),
    sortP50: rank(sorted.fills, 0.5),
    idle: stream.idleShare(),
    normalShare: itemsOf(streamed.filter((batch) => batch.normal)) / itemsOf(streamed),
    itemLimit: normal.filter((batch) => batch.closedBy === 'item_limit').length,
  }
}

interface Batch {
  readonly fill: number
  readonly size: number
  readonly budgetTokens: number
  readonly actualTokens: number
  readonly normal: boolean
  readonly closedBy: string
}

/** Consumers with a service time, and a producer that is a quarter faster than all of them. */
class Stream {
  readonly batches: Batch[] = []
  /** How many of them left before the input ended. */
  batchesAtEnd = 0
  private readonly core: Core
  private now = 0
  private submitted = 0
  private readonly sizes = new Map<number, { size: number; padded: number }>()
  /** By consumer, from 1 on: its channel, what it works on, and until when. */
  private readonly channels: number[][]
  private readonly busy: { batch: number; until: number }[]

  constructor(private readonly workload: Workload) {
    const { budget, consumers } = workload
    this.core = new Core(
      config({
        spanWaste: RULE_OPTIONS.spanWaste.fallback,
        releaseThreshold: null,
        channelDepth: DEPTH,
        maxQueuedTokens: 96 * budget,
        leaseTimeoutMs: 1e9,
        leaseMaxMs: 1e9,
        lengthsOnly: true,
      }),
    )
    this.channels = Array.from({ length: consumers + 1 }, () => [])
    this.busy = this.channels.map(() => ({ batch: 0, until: Number.POSITIVE_INFINITY }))
  }

  run(): void {
    const { budget, consumers, lengths } = this.workload
    for (let consumer = 1; consumer <= consumers; consumer++) {
      const made = contract({ batchSize: 4096, tokens: budget, inputLength: 8192 })
      this.step({ type: 'register', consumer, name: `gpu${consumer}`, contract: made })
    }
    // About eight blocks in the time of a batch: a budget of 16,384 takes 2 + 8.2 ms.
    const everyNs = Math.floor(serviceNs(budget) / 8)
    const tokens = Math.ceil((1.25 * consumers * budget) / 8)
    for (let arrivalAt = 0; this.submitted < lengths.length; arrivalAt += everyNs) {
      this.until(arrivalAt)
      this.arrive(tokens)
    }
    this.batchesAtEnd = this.batches.length
    this.step({ type: 'flush', job: 0 })
    this.until(Number.POSITIVE_INFINITY)
  }

  left(): number {
    const { waiting, leased } = this.core.counts()
    return waiting.items + leased
  }

  idleShare(): number {
    const { consumers, models } = this.core.counts()
    const span = models[0].inputEndedAt! - models[0].firstDispatchAt!
    return sum(consumers.map((one) => one.idleNsDuringInput)) / (span * this.workload.consumers)
  }

  private arrive(tokens: number): void {
    const { lengths } = this.workload
    const from = this.submitted
    let to = from
    for (let held = 0; to < lengths.length && held < tokens; to++) held += lengths[to]
    const chosen = Int32Array.from(lengths.slice(from, to))
    const ids = new Uint8Array(chosen.length * 4)
    const view = new DataView(ids.buffer)
    for (let i = 0; i < chosen.length; i++) view.setUint32(i * 4, from + i)
    const effects = this.step({
      type: 'submit',
      block: {
        job: 0,
        count: chosen.length,
        model: new Int32Array(chosen.length).fill(1),
        lengths: chosen,
        tokens: new Int32Array(0),
        ids,
        idEnds: Uint32Array.from(chosen, (_, i) => (i + 1) * 4),
        payloads: null,
        payloadEnds: null,
      },
    })
    for (const effect of effects) if (effect.type === 'submitted') this.submitted += effect.accepted
  }

  /** Completions and timers up to a time. */
  private until(end: number): void {
    for (;;) {
      const next = Math.min(this.nextDone(), this.core.nextTimerAt())
      // The renewal timers of live consumers never end: they are not work.
      if (next > end || (end === Number.POSITIVE_INFINITY && this.left() === 0)) break
      this.now = next
      if (this.nextDone() === next) this.complete()
      else this.step({ type: 'tick' })
    }
    if (end !== Number.POSITIVE_INFINITY) this.now = end
  }

  private nextDone(): number {
    return Math.min(...this.busy.slice(1).map((one) => one.until))
  }

  private complete(): void {
    const consumer = this.busy.findIndex((one) => one?.until === this.now)
    const { batch } = this.busy[consumer]
    const { size } = this.sizes.get(batch)!
    this.busy[consumer] = { batch: 0, until: Number.POSITIVE_INFINITY }
    this.step({
      type: 'results',
      consumer,
      brokerLife: LIFE,
      batch,
      index: Uint32Array.from({ length: size }, (_, i) => i),
      outcome: new Uint8Array(size),
    })
    this.take(consumer)
  }

  private take(consumer: number): void {
    if (this.busy[consumer].batch !== 0 || this.channels[consumer].length === 0) return
    const batch = this.channels[consumer].shift()!
    this.busy[consumer] = { batch, until: this.now + serviceNs(this.sizes.get(batch)!.padded) }
    this.step({ type: 'taken', consumer, batch })
  }

  private step(event: CoreEvent): readonly Effect[] {
    const all = [...this.core.step(event, this.now)]
    for (let more = true; more; ) {
      const effects = this.core.step({ type: 'dispatch' }, this.now)
      const sent = effects.find((effect): effect is DispatchEffect => effect.type === 'dispatch')
      if (sent !== undefined) this.sent(sent)
      more = sent !== undefined
    }
    for (let consumer = 1; consumer < this.busy.length; consumer++) this.take(consumer)
    return all
  }

  private sent(effect: DispatchEffect): void {
    const { fill, size, budgetTokens, actualTokens, normal, closedBy } = effect
    this.batches.push({ fill, size, budgetTokens, actualTokens, normal, closedBy })
    this.sizes.set(effect.batch, { size, padded: budgetTokens })
    this.channels[effect.consumer].push(effect.batch)
  }
}

function serviceNs(padded: number): number {
  return 2000 * US + padded * 500
}

function shortTexts(count: number, seed: number, consumers: number): Workload {
  return { lengths: logNormal(count, seed, 90, 0.8, 512), longest: 512, budget: 16_384, consumers }
}

function longTexts(count: number, seed: number, consumers: number): Workload {
  return {
    lengths: logNormal(count, seed, 400, 0.9, 8192),
    longest: 8192,
    budget: 131_072,
    consumers,
  }
}

function logNormal(count: number, seed: number, median: number, sigma: number, longest: number) {
  const random = new Random(seed)
  return Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(6.2831853 * random.next())
    return Math.max(4, Math.min(longest, Math.round(median * Math.exp(sigma * normal))))
  })
}

/** Longest first, as many as the budget holds: the practical optimum, which cannot stream. */
function sortReference({ lengths, budget }: Workload) {
  const sorted = [...lengths].sort((a, b) => b - a)
  const fills: number[] = []
  let padded = 0
  for (let at = 0; at < sorted.length; ) {
    const width = Math.ceil(sorted[at] / 8) * 8
    const size = Math.min(Math.floor(budget / width), sorted.length - at)
    fills.push((size * width) / budget)
    padded += size * width
    at += size
  }
  const actual = sum(lengths)
  fills.sort((a, b) => a - b)
  return { batches: fills.length, waste: 1 - actual / padded, fills }
}

function itemsOf(batches: readonly Batch[]): number {
  return sum(batches.map((batch) => batch.size))
}

function wasteOf(batches: readonly Batch[]): number {
  const padded = sum(batches.map((batch) => batch.budgetTokens))
  return 1 - sum(batches.map((batch) => batch.actualTokens)) / padded
}

/** Nearest rank. */
function rank(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
}

function sum(numbers: ArrayLike<number>): number {
  let total = 0
  for (let i = 0; i < numbers.length; i++) total += numbers[i]
  return total
}
