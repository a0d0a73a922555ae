// The quarantine of disk mode (S27): its entries are files, in step with what the core holds.
//
// An item that is replayed keeps its file until its result is durable: a broker that ends in between
// has it in quarantine again.
import type { QuarantinedItem } from '@fabric/core'
import { NS_PER_MS } from '../clock.js'
import type { Job } from '../jobs.js'
import type { ResultRecord } from '../results/log.js'
import type { DiskShape } from '../storage/store.js'
import type { DurableHost } from './host.js'
import { clockOf } from './loads.js'
import { QuarantineFolder } from './quarantine-folder.js'
import type { Settlements } from './settlements.js'

export class Quarantine {
  readonly #folder: QuarantineFolder
  /** The entry of each item that was replayed, by the number that it has now. */
  readonly #replayed = new Map<number, number>()
  readonly #underWay = new Set<Promise<void>>()

  constructor(
    readonly host: DurableHost,
    readonly settlements: Settlements,
    dataDir: string,
  ) {
    this.#folder = new QuarantineFolder(dataDir)
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0
  }

  /** Entries of earlier lives whose items have ended and whose jobs are known. */
  async load(): Promise<QuarantinedItem[]> {
    const { store, jobs, clock, story } = this.host
    const known = new Set(Array.from(jobs, ({ number }) => number))
    const entries: QuarantinedItem[] = []
    for (const entry of await this.#folder.load(clockOf(clock.now()), (path, error) =>
      story.quarantineUnreadable(path, error),
    )) {
      const isKept = known.has(entry.job) && (await store.find(entry.item, entry.job)) === null
      if (isKept) entries.push(entry)
      else await this.#folder.drop(entry.item)
    }
    return entries
  }

  /** Whether an entry of the item shall outlive the broker. */
  takes(sequence: number, shape: DiskShape | null): boolean {
    return shape !== null || this.#replayed.has(sequence)
  }

  /** Ends the item once its entry is on disk. The record is borrowed. */
  end(job: Job, sequence: number, shape: DiskShape | null, record: ResultRecord): void {
    const entry = this.host.quarantined.get(sequence)
    const kept = { ...record, id: record.id.slice(), value: record.value.slice() }
    this.settlements.expect(job, 1)
    this.#track(
      this.#keep(entry).then(() => {
        if (!job.deleted) this.settlements.add(job, sequence, shape, kept, this.ended(sequence))
        this.settlements.flush()
        this.settlements.expect(job, -1)
      }),
    )
  }

  /** What is to be done when the item's end is durable: its old entry goes, if it was replayed. */
  ended(sequence: number): (() => void) | undefined {
    const entry = this.#replayed.get(sequence)
    if (entry === undefined) return undefined
    this.#replayed.delete(sequence)
    return () => this.#drop(entry)
  }

  replayed(sequence: number, entry: number): void {
    this.#replayed.set(sequence, entry)
  }

  /** Entries that the core has forgotten go: deleted, of a deleted job, or for want of room. */
  review(): void {
    const replayed = new Set(this.#replayed.values())
    for (const item of Array.from(this.#folder.items()))
      if (!this.host.quarantined.has(item) && !replayed.has(item)) this.#drop(item)
  }

  /** A failure is told: the item's result says what became of it all the same. */
  async #keep(entry: QuarantinedItem | undefined): Promise<void> {
    if (entry === undefined) return
    const { clock, story } = this.host
    const now = clock.now()
    const nowMs = Date.now()
    try {
      await this.#folder.keep(entry, (ns) => nowMs - (now - ns) / NS_PER_MS)
    } catch (error) {
      story.quarantineNotKept(error)
    }
    this.review()
  }

  #drop(item: number): void {
    this.#track(this.#folder.drop(item).catch((error) => this.host.story.quarantineNotKept(error)))
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work)
    void work.finally(() => this.#underWay.delete(work))
  }
}
