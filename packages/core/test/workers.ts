// What consumers do in a simulation: take, work, report, run out of memory, die of poison.

import { RESULT_COMPLETED, RESULT_OUT_OF_MEMORY } from '../src/events.js'
import { LIFE } from './helpers.js'
import type { ShadowBatch, ShadowConsumer } from './shadow/items.js'
import type { Simulation } from './simulate.js'
import type { Operation } from './workload.js'

/** Of one kind, by the name of the operation. */
type Told = Partial<Pick<Extract<Operation, { op: 'work' }>, 'mask' | 'outcomes' | 'stray'>>

/** Whether bit `at` mod 30 is set. */
export const isIn = (mask: number, at: number): boolean => (mask & (1 << (at % 30))) !== 0

export class Workers {
  constructor(
    private readonly simulation: Simulation,
    private readonly memoryTokens: number | null,
  ) {}

  /** Any batch of the channel, though more may be in flight than are allowed; or one that is none. */
  takeStray({ id, channel }: ShadowConsumer, number: number): void {
    const batch = channel.length === 0 ? number : channel[number % channel.length].number
    this.simulation.step({ type: 'taken', consumer: id, batch })
  }

  /** Takes the first batch of the channel; a poison item in it kills the consumer (S27). */
  private takeOne(consumer: ShadowConsumer): void {
    const [batch] = consumer.channel
    this.simulation.step({ type: 'taken', consumer: consumer.id, batch: batch.number })
    const kills = batch.items.some(
      (item) => item.poison && item.state === 'leased' && item.batch === batch.number,
    )
    if (!kills) return
    this.simulation.step({ type: 'disconnect', consumer: consumer.id, cause: 'connection_closed' })
    const { name, contract } = consumer
    this.simulation.step({
      type: 'register',
      consumer: this.simulation.nextConsumer++,
      name,
      contract,
    })
  }

  /** A consumer takes a batch or reports on one that it has: what is asked, if it can. */
  consume(consumer: ShadowConsumer, operation: Extract<Operation, { op: 'take' | 'work' }>): void {
    const { channel, inFlight, contract } = consumer
    const mayTake = channel.length > 0 && inFlight.length < contract.maxInFlight
    if (mayTake && (operation.op === 'take' || inFlight.length === 0)) this.takeOne(consumer)
    else if (inFlight.length === 0) return
    else if (operation.op === 'take') this.report(consumer.id, inFlight[0], {})
    else this.report(consumer.id, inFlight[operation.batch % inFlight.length], operation)
  }

  report(consumer: number, batch: ShadowBatch, { mask, outcomes, stray }: Told): void {
    const left = batch.items.map((_, index) => index).filter((i) => !batch.reported.has(i))
    const chosen = mask === undefined ? left : left.filter((i) => isIn(mask, i))
    if (stray) chosen.push(0, batch.items.length + 3)
    const ends = outcomes === undefined || outcomes.length === 0 ? [RESULT_COMPLETED] : outcomes
    const tooMuch = this.isTooMuch(batch)
    const told = chosen.map((_, i) => (tooMuch ? RESULT_OUT_OF_MEMORY : ends[i % ends.length]))
    this.results(consumer, batch.number, chosen, told)
  }

  results(
    consumer: number,
    batch: number,
    index: readonly number[],
    outcome: readonly number[],
    brokerLife = LIFE,
  ): void {
    this.simulation.step({
      type: 'results',
      consumer,
      brokerLife,
      batch,
      index: Uint32Array.from(index),
      outcome: Uint8Array.from(outcome),
    })
  }

  work(consumer: ShadowConsumer): void {
    if (consumer.silent) return
    const { channel, inFlight, contract } = consumer
    while (channel.length > 0 && inFlight.length < contract.maxInFlight) {
      this.takeOne(consumer)
      if (!this.simulation.shadow.consumers.has(consumer.id)) return
    }
    for (const batch of [...inFlight]) this.report(consumer.id, batch, {})
  }

  private isTooMuch({ items }: ShadowBatch): boolean {
    const longest = Math.max(...items.map((item) => item.length))
    return (
      items.length > 1 && this.memoryTokens !== null && longest * items.length > this.memoryTokens
    )
  }
}
