// A decided batch on its way into its consumer's channel, and what is counted of it (S22).
import type { DispatchEffect } from '@fabric/core'
import { FabricError } from '@fabric/protocol'
import { Assembler } from './channels/assembly.js'
import type { Consumer, EngineParts } from './engine-parts.js'
import type { Job } from './jobs.js'

export class Delivery {
  readonly #assembler: Assembler

  constructor(
    readonly parts: EngineParts,
    readonly consumers: ReadonlyMap<number, Consumer>,
  ) {
    this.#assembler = new Assembler(parts.core.items, parts.brokerLife)
  }

  deliver(effect: DispatchEffect, startedNs: number): void {
    const { stats, clock, channelDepth } = this.parts
    const consumer = this.consumers.get(effect.consumer)!
    const { layout } = consumer.contract
    try {
      const bytes = this.#assembler.write(effect, layout, consumer.connection.channel)
      stats.assembly.record(clock.now() - startedNs)
      stats.bytes += bytes
    } catch (error) {
      if (!(error instanceof FabricError)) throw error
      // The ring is lost: the consumer goes, and this batch comes back with its other work.
      setImmediate(() => consumer.connection.fail(error))
    }
    const tail = this.consumers.size * (channelDepth + 1)
    stats.recordDispatch(effect, layout === 'padded', tail)
    this.#countItems(effect, startedNs)
  }

  #countItems(effect: DispatchEffect, now: number): void {
    const { jobs, stats } = this.parts
    const { items } = this.parts.core
    let job: Job | null = null
    for (let row = 0; row < effect.size; row++) {
      const slot = effect.items[row]
      stats.queueSeconds.record((now - items.acceptedAt(slot)) / 1e9)
      const number = items.job(slot)
      if (job !== null && job.number === number) continue
      job = jobs.byNumber(number)
      job.countBatch(effect.batch, now)
    }
  }
}
