// What the page shows of a run, gathered as it goes and bounded however long it is.
import type { CoreCounts, Effect, GateReason } from '@fabric/core'
import type { SimulatedBatch } from '../batch.js'
import type { SimulatedConsumer } from '../consumer.js'
import { Ratios } from '../report/ratios.js'
import { paddedTokensOf } from '../report/tally.js'
import type { Observer } from '../shell.js'
import { Series } from './series.js'
import { Work } from './work.js'

const TAIL_BATCHES = 72
/** Padding is counted in steps of this; the histogram's bars are wider. */
const PADDING_STEP = 0.001

export interface TailBatch {
  readonly number: number
  readonly atNs: number
  readonly consumer: string
  readonly size: number
  readonly paddedLength: number
  readonly fill: number
  /** Actual tokens over the budget. */
  readonly useful: number
  readonly kind: 'normal' | 'cleanup' | 'other'
  readonly closedBy: string
}

export class Recorder implements Observer {
  readonly series = new Series()
  readonly work = new Map<string, Work>()
  readonly padding = new Ratios()
  readonly tail: TailBatch[] = []
  readonly gates: { readonly atNs: number; readonly reason: GateReason }[] = []
  endNs = 0
  shortest = Number.POSITIVE_INFINITY
  longest = 0

  dispatched(batch: SimulatedBatch, consumer: SimulatedConsumer, nowNs: number): void {
    const { size, paddedLength, fill, actualTokens, cleanup, normal } = batch
    const padded = paddedTokensOf(batch, consumer)
    const padding = Math.round((1 - actualTokens / padded) / PADDING_STEP) * PADDING_STEP
    this.padding.add(padding)
    this.shortest = Math.min(this.shortest, paddedLength)
    this.longest = Math.max(this.longest, paddedLength)
    this.tail.push({
      number: batch.number,
      atNs: nowNs,
      consumer: consumer.name,
      size,
      paddedLength,
      fill,
      useful: actualTokens / consumer.contract.tokens,
      kind: cleanup ? 'cleanup' : normal ? 'normal' : 'other',
      closedBy: batch.closedBy,
    })
    if (this.tail.length > TAIL_BATCHES) this.tail.shift()
  }

  worked(name: string, batch: SimulatedBatch, from: number, to: number, done: boolean): void {
    let work = this.work.get(name)
    if (work === undefined) {
      work = new Work()
      this.work.set(name, work)
    }
    work.add(from, to, batch.paddedLength, done)
    this.endNs = Math.max(this.endNs, to)
  }

  instant(nowNs: number, counts: () => CoreCounts): void {
    this.series.record(nowNs, counts)
    this.endNs = Math.max(this.endNs, nowNs)
  }

  effect(effect: Effect, nowNs: number): void {
    if (effect.type === 'gate') this.gates.push({ atNs: nowNs, reason: effect.reason })
    if (effect.type === 'cleanup') this.series.noteCleanup(effect.state === 'begin')
  }
}
