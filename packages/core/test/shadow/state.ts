// The state that the shadow believes the core to be in, and how it is asked about.

import type { Core } from '../../src/core.js'
import type { CoreConfig } from '../../src/core-config.js'
import type { CoreCounts } from '../../src/core-counts.js'
import { check } from './checks.js'
import { ShadowDue } from './due.js'
import type { ShadowBatch, ShadowConsumer, ShadowItem } from './items.js'
import { ShadowPassedOver } from './passed-over.js'
import { ShadowQueues } from './queues.js'

export class ShadowState {
  /** By number. */
  readonly items = new Map<number, ShadowItem>()
  lastSequence = 0
  /** Numbers of items whose job was deleted: a restart does not know of them. */
  readonly deleted = new Set<number>()
  /** Admitted, by number: their `stored` is under way. Null: of a job that is gone. */
  readonly pending = new Map<number, ShadowItem | null>()
  /** Those that have not ended: all that a check looks at. */
  readonly unsettled = new Set<ShadowItem>()
  readonly batches = new Map<number, ShadowBatch>()
  /** Batches that were taken back: their results come late. */
  readonly lost: ShadowBatch[] = []
  readonly consumers = new Map<number, ShadowConsumer>()
  readonly flushed = new Map<number, boolean>([[0, false]])
  readonly cleaning = new Set<number>()
  readonly queues: ShadowQueues
  readonly due: ShadowDue
  readonly passedOver: ShadowPassedOver
  gateOpen = false
  tickedAt = -1
  /** Length of the item that the last submission was refused for, or 0 (S13b). */
  refusedLength = 0
  /** Jobs whose items are ready for nobody: as of the last event that changes it. */
  onHold = new Set<number>()

  constructor(
    protected core: Core,
    readonly config: CoreConfig,
  ) {
    this.queues = new ShadowQueues(config)
    this.due = new ShadowDue(config)
    this.passedOver = new ShadowPassedOver(
      config,
      (item) => `${item.model}:${this.queues.paddedLength(item.length)}`,
    )
  }

  itemOf(slot: number): ShadowItem {
    const item = this.items.get(this.core.items.sequence(slot))
    check(item !== undefined, `slot ${slot} is not an item`)
    check(this.core.items.durable(slot) === item.durable, 'whether a slot is durable')
    check(this.core.items.length(slot) === item.length, 'length of a slot')
    check(this.core.items.model(slot) === item.model, 'model of a slot')
    check(this.core.items.job(slot) === item.job, 'job of a slot')
    return item
  }

  membersOf(model: number): ShadowConsumer[] {
    return [...this.consumers.values()].filter(
      (one) => !one.draining && one.contract.model === model,
    )
  }

  hasWork(): boolean {
    return this.unsettled.size > 0
  }

  /** The broker began anew: what is on disk is all that there is, whether it was told or not. */
  restart(core: Core, stored: ReadonlySet<number>, now: number): void {
    this.core = core
    for (const [number, item] of this.pending)
      if (item !== null && stored.has(number)) this.accept(number, item, now)
    this.pending.clear()
    for (const number of this.deleted) this.items.delete(number)
    this.deleted.clear()
    for (const [number, item] of this.items) {
      if (item.state === 'settled') continue
      if (item.durable) check(stored.has(number), `${item.id} is not on disk`)
      if (!item.durable) this.items.delete(number)
      if (!item.durable) this.unsettled.delete(item)
      item.state = 'queued'
      item.returns = 0
      item.suspicion = null
      item.acceptedAt = now
    }
    this.lastSequence = Math.max(0, ...stored, ...this.items.keys())
    for (const map of [this.batches, this.consumers]) map.clear()
    this.lost.length = 0
    this.cleaning.clear()
    this.queues.clear()
    this.onHold.clear()
    this.passedOver.clear()
    for (const item of this.unsettled) this.passedOver.wait(item)
    this.gateOpen = false
  }

  accept(number: number, item: ShadowItem, now: number): void {
    item.acceptedAt = now
    this.items.set(number, item)
    this.unsettled.add(item)
    this.passedOver.wait(item)
  }

  settled(slot: number): void {
    const item = this.itemOf(slot)
    check(item.state !== 'settled', `I1: ${item.id} settled twice`)
    if (item.state === 'queued' && !item.durable) this.queues.withdraw(item)
    item.state = 'settled'
    this.unsettled.delete(item)
  }

  done(number: number): void {
    const batch = this.batches.get(number)!
    check(batch.reported.size === batch.items.length, 'a batch done before it was reported')
    const consumer = this.consumers.get(batch.consumer)!
    consumer.inFlight.splice(consumer.inFlight.indexOf(batch), 1)
    this.batches.delete(number)
  }

  takeBack(number: number): void {
    const batch = this.batches.get(number)!
    this.batches.delete(number)
    this.lost.push(batch)
    const consumer = this.consumers.get(batch.consumer)
    for (const list of consumer === undefined ? [] : [consumer.channel, consumer.inFlight]) {
      if (list.includes(batch)) list.splice(list.indexOf(batch), 1)
    }
    for (const item of batch.items) {
      if (item.state !== 'leased' || item.batch !== number) continue
      // What was a group stays one; what is under suspicion becomes one.
      item.state = item.suspicion === null ? 'reclaimed' : 'grouped'
    }
  }

  /** Without effects: what is on disk has no slot to tell of. */
  endOnDisk(job: number): void {
    for (const item of this.unsettled) {
      if (item.job !== job) continue
      check(item.durable, `I1: the end of ${item.id} was not told`)
      item.state = 'settled'
      this.unsettled.delete(item)
    }
    for (const [number, item] of this.items) if (item.job === job) this.deleted.add(number)
    for (const [number, item] of this.pending) {
      if (item?.job === job) this.pending.set(number, null)
    }
  }

  counts(): CoreCounts {
    return this.core.counts()
  }

  jobsOnHold({ jobs } = this.counts()): Set<number> {
    return new Set(jobs.filter((job) => job.onHold).map((job) => job.job))
  }
}
