// Consumers that an operator drains: each finishes what it has taken, is told so and leaves.
import type { CoreCounts } from '@fabric/core'
import { FabricError } from '@fabric/protocol'
import type { Consumer } from './engine-parts.js'

export class Drains {
  /** Drained, and not yet gone. */
  readonly #drained = new Set<number>()

  constructor(
    readonly consumers: ReadonlyMap<number, Consumer>,
    readonly counts: () => CoreCounts,
  ) {}

  /** @throws FabricError FABRIC_NOT_FOUND */
  begin(name: string): Consumer {
    const consumer = Array.from(this.consumers.values()).find((each) => each.name === name)
    if (consumer === undefined)
      throw new FabricError(
        'FABRIC_NOT_FOUND',
        `no consumer ${JSON.stringify(name)} is connected`,
        { field: 'name' },
      )
    this.#drained.add(consumer.number)
    consumer.connection.sendDrain()
    return consumer
  }

  /** Something of the consumer has ended: it leaves, if that was the last. */
  check(number: number): void {
    if (!this.#drained.has(number)) return
    const counts = this.counts().consumers.find(({ id }) => id === number)
    if (counts !== undefined && counts.inFlight > 0) return
    this.#drained.delete(number)
    const { connection } = this.consumers.get(number)!
    connection.endsCleanly = true
    const error = new FabricError('FABRIC_CONSUMER_DRAINED', 'an operator drained this consumer')
    setImmediate(() => connection.fail(error))
  }

  gone(number: number): void {
    this.#drained.delete(number)
  }
}
