// One life of the broker: its core, and what the shell around the core remembers until it ends.
import { Core, type CoreEvent, type Effect } from '@fabric/core'
import type { SimulatedConsumer } from './consumer.js'
import type { Rules } from './scenario/config.js'

export class Life {
  readonly core: Core
  readonly brokerLife: bigint
  /** By number, the dead too: late results still name them. */
  readonly consumers = new Map<number, SimulatedConsumer>()
  readonly jobs = new Set<number>([0])

  constructor(
    rules: Rules,
    ordinal: number,
    /** Batches of earlier lives: lines number them on. */
    readonly batchesBefore: number,
  ) {
    this.brokerLife = BigInt(ordinal)
    this.core = new Core({ ...rules, brokerLife: this.brokerLife })
  }

  step(event: CoreEvent, now: number): readonly Effect[] {
    return this.core.step(event, now)
  }

  /** The item's id; the slot must be valid, as the effects say. */
  nameOf(slot: number): string {
    const { items } = this.core
    const bytes = items.segmentBytes(slot)
    const at = items.idOffset(slot)
    return Buffer.from(bytes.buffer, bytes.byteOffset + at, items.idBytes(slot)).toString('utf8')
  }

  namesOf(slots: Int32Array): string[] {
    return Array.from(slots, (slot) => this.nameOf(slot))
  }
}
