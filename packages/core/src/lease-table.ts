// Batches that consumers hold, and those taken back from them (S24 to S26).

import type { Consumer } from './consumers.js'
import type { Group } from './group-table.js'
import type { Model } from './models.js'

/** In a batch's item list: the item was settled while the batch went on (S35). */
export const SETTLED_ELSEWHERE = -1
/** In a batch's item list: the consumer has said how the item ended. */
export const REPORTED = -2

/**
 * Batches whose items a late result may still settle. More than any fleet loses at once, and the
 * oldest goes first: without a bound, a flapping consumer would fill the memory.
 */
const LATE_BATCHES_MAX = 4096

export class Batch {
  /** Time at which the consumer started on it, or -1: it stands in the channel. */
  takenAt = -1
  /** Items that the consumer has said nothing of. */
  unreported: number
  /** Timer of leaseMax once taken, or -1 (S24). */
  timer = -1

  constructor(
    readonly row: number,
    readonly number: number,
    readonly consumer: Consumer,
    readonly model: Model,
    /** Slots in row order; settled ones are negative. */
    readonly items: Int32Array,
    /** The group that it is, or null (S27, S28). */
    readonly group: Group | null,
    /** Budget by which it was packed (S28). */
    readonly tokens: number,
  ) {
    this.unreported = items.length
  }
}

/** What was left of a batch when it was taken back: slots, and whose they were then. */
export class LateBatch {
  constructor(
    readonly slots: Int32Array,
    readonly sequences: Float64Array,
    readonly forgetAt: number,
  ) {}
}

export class LeaseTable {
  readonly live = new Map<number, Batch>()
  /** Oldest first. */
  readonly late = new Map<number, LateBatch>()
  private readonly rows: (Batch | null)[] = []
  private readonly freeRows: number[] = []
  private lastNumber = 0

  open(consumer: Consumer, items: Int32Array, group: Group | null): Batch {
    const row = this.freeRows.pop() ?? this.rows.length
    const batch = new Batch(
      row,
      ++this.lastNumber,
      consumer,
      consumer.model,
      items,
      group,
      consumer.cls.contract.tokens,
    )
    this.rows[row] = batch
    this.live.set(batch.number, batch)
    return batch
  }

  close(batch: Batch): void {
    this.live.delete(batch.number)
    this.rows[batch.row] = null
    this.freeRows.push(batch.row)
  }

  atRow(row: number): Batch {
    return this.rows[row]!
  }

  remember(number: number, batch: LateBatch): void {
    this.late.set(number, batch)
    if (this.late.size > LATE_BATCHES_MAX) {
      for (const oldest of this.late.keys()) {
        this.late.delete(oldest)
        break
      }
    }
  }
}
