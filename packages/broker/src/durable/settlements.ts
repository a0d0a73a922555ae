// Ends of items on their way to the disk: a result is shown, counted and told only when it is durable,
// and a job has ended when all of its results are.
import type { SettledStatus } from '@fabric/core'
import type { Job } from '../jobs.js'
import type { DiskResults } from '../results/disk-results.js'
import { type ResultRecord, recordBytes } from '../results/log.js'
import type { DiskShape, SettledItem } from '../storage/store.js'
import { ByteBudget } from './byte-budget.js'
import type { DurableHost } from './host.js'

/**
 * Results that wait for the disk. Over it no batch goes out: a disk that hangs must not fill memory. What
 * comes from batches that are out waits here in copies, so that the store never has to refuse any.
 */
export const SETTLE_BYTES_MAX = 64 * 1024 * 1024

interface Written {
  readonly job: Job
  readonly status: SettledStatus
  readonly bytes: number
  readonly onDurable: (() => void) | undefined
}

/** What one flush hands over. */
interface Part {
  readonly items: readonly SettledItem[]
  readonly written: readonly Written[]
}

export class Settlements {
  readonly #budget = new ByteBudget(SETTLE_BYTES_MAX)
  #items: SettledItem[] = []
  #written: Written[] = []
  /** In the order in which they came. */
  readonly #late: Part[] = []
  /** Items under way, by job. */
  readonly #underWay = new Map<Job, number>()
  /** Jobs whose end waits for their last results. */
  readonly #ending = new Set<Job>()

  constructor(
    readonly host: DurableHost,
    readonly onEnd: (job: Job) => void,
  ) {}

  get bytesUnderWay(): number {
    return this.#late.reduce((sum, part) => sum + bytesOf(part), this.#budget.usedBytes)
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0
  }

  /** Results of the job will come, or, with a negative number, have come: it does not end before. */
  expect(job: Job, items: number): void {
    const left = (this.#underWay.get(job) ?? 0) + items
    if (left > 0) this.#underWay.set(job, left)
    else this.#underWay.delete(job)
    if (left <= 0 && this.#ending.delete(job)) this.onEnd(job)
  }

  /** The record is borrowed until `flush`. @param shape null for an item that was not durable. */
  add(
    job: Job,
    sequence: number,
    shape: DiskShape | null,
    record: ResultRecord,
    onDurable?: () => void,
  ): void {
    this.#items.push({ job: job.number, sequence, shape, record })
    this.#written.push({ job, status: record.status, bytes: recordBytes(record), onDurable })
    this.expect(job, 1)
  }

  /** Resolves when there is room for more. */
  room(): Promise<void> {
    return this.#budget.room()
  }

  /** Hands what was added to the store, which copies it, or keeps copies while too much is under way. */
  flush(): void {
    if (this.#items.length === 0) return
    const part = { items: this.#items, written: this.#written }
    this.#items = []
    this.#written = []
    if (this.#budget.isFull) this.#late.push({ ...part, items: part.items.map(copyOf) })
    else this.#hand(part)
  }

  #hand(part: Part): void {
    const { items, written } = part
    const settled = this.host.store.settle(items)
    const bytes = bytesOf(part)
    this.#budget.add(bytes)
    if (this.#budget.isFull) this.host.hold(true)
    settled.then(
      (codes) => this.#onDurable(written, codes, bytes),
      (error) => {
        this.#giveBack(bytes)
        this.host.story.settleFailed(error, written.length)
        this.host.hold(true)
      },
    )
  }

  /** The core has told the job's end; the answer to readers waits for the disk. */
  end(job: Job): void {
    if (this.#underWay.has(job)) this.#ending.add(job)
    else this.onEnd(job)
  }

  /** New items: its end is none any more. */
  reopen(job: Job): void {
    this.#ending.delete(job)
  }

  #onDurable(written: readonly Written[], codes: Uint8Array, bytes: number): void {
    this.#giveBack(bytes)
    if (!this.#budget.isFull) this.host.hold(false)
    const stored = new Map<Job, number>()
    written.forEach(({ job, status, bytes: size, onDurable }, i) => {
      onDurable?.()
      if (codes[i] === 1) job.settled[status] += 1
      stored.set(job, (stored.get(job) ?? 0) + (codes[i] === 1 ? size : 0))
      const left = this.#underWay.get(job)! - 1
      if (left === 0) this.#underWay.delete(job)
      else this.#underWay.set(job, left)
    })
    for (const [job, size] of stored) this.#tell(job, size)
  }

  #giveBack(bytes: number): void {
    this.#budget.remove(bytes)
    while (!this.#budget.isFull && this.#late.length > 0) this.#hand(this.#late.shift()!)
  }

  #tell(job: Job, bytes: number): void {
    if (!job.deleted) {
      ;(job.results as DiskResults).unreadBytes += bytes
      this.host.run({ type: 'resultsStored', job: job.number, bytes })
    }
    if (!this.#underWay.has(job) && this.#ending.delete(job)) this.onEnd(job)
    job.wake()
  }
}

const bytesOf = ({ written }: Part) => written.reduce((sum, one) => sum + one.bytes, 0)

function copyOf({ record, ...item }: SettledItem): SettledItem {
  return { ...item, record: { ...record, id: record.id.slice(), value: record.value.slice() } }
}
