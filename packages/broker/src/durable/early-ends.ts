// Items that ended on disk, without having been read: cancelled, or past their deadline (S35), and their
// ids are read now, for their results; or by a result of an earlier life, which is here (S26). The job has
// not ended before those are kept.
import type { Effect } from '@fabric/core'
import type { Job } from '../jobs.js'
import type { ResultRecord } from '../results/log.js'
import { earlyEndValue } from '../settlement.js'
import type { LoadedItems } from '../storage/store.js'
import type { DurableHost } from './host.js'
import type { Settlements } from './settlements.js'

type EndedEffect = Extract<Effect, { type: 'endedOnDisk' }>

/** A disk that fails to read is asked again after so long. */
const READ_AGAIN_MS = 1_000

export class EarlyEnds {
  readonly #underWay = new Set<Promise<void>>()
  /** Results that are known, by number of their items. */
  readonly #given = new Map<number, ResultRecord>()

  constructor(
    readonly host: DurableHost,
    readonly settlements: Settlements,
  ) {}

  get isIdle(): boolean {
    return this.#underWay.size === 0
  }

  /** Resolves when the results of what has ended so far are with the store. */
  async told(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** The result of an item that may end in the next step. */
  give(sequence: number, record: ResultRecord): void {
    this.#given.set(sequence, record)
  }

  /** It was for nothing if the item did not end on disk. */
  takeBack(sequence: number): void {
    this.#given.delete(sequence)
  }

  end(effect: EndedEffect): void {
    const job = this.host.jobs.byNumber(effect.job)
    this.settlements.expect(job, effect.sequences.length)
    const ended = this.#settle(job, effect).finally(() => {
      this.#underWay.delete(ended)
      this.settlements.expect(job, -effect.sequences.length)
    })
    this.#underWay.add(ended)
  }

  async #settle(job: Job, { status, sequences, model, paddedLength }: EndedEffect): Promise<void> {
    for (const sequence of sequences) {
      const given = this.#given.get(sequence)
      if (given !== undefined) {
        this.host.stats.countSettled(model, status)
        this.settlements.add(job, sequence, { model, paddedLength }, given)
        continue
      }
      const found = await this.#find(job, sequence)
      // Null: its block is damaged, which is told on its own.
      if (found === null || job.deleted) continue
      this.host.stats.countSettled(model, status)
      this.settlements.add(job, sequence, { model, paddedLength }, recordOf(found, status))
    }
    this.settlements.flush()
  }

  async #find(job: Job, sequence: number): Promise<LoadedItems | null> {
    for (;;) {
      try {
        return await this.host.store.find(sequence, job.number)
      } catch (error) {
        this.host.story.readFailed(error)
        await new Promise((resolve) => setTimeout(resolve, READ_AGAIN_MS).unref())
      }
    }
  }
}

function recordOf({ block }: LoadedItems, status: EndedEffect['status']): ResultRecord {
  if (status !== 'cancelled' && status !== 'expired')
    throw new Error(`bug: an item ended on disk as ${status}, and no result was given`)
  const { encoding, value, truncatedTo } = earlyEndValue(status)
  return { status, attempts: 0, truncatedTo, encoding, value, id: block.ids }
}
