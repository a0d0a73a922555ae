// Records that are in a spool before their place is known: those an earlier run left, and results that
// come before their line is read. About 40 bytes each.
import type { JobResult } from '../results/value.js'
import { float64Column, uint32Column } from './column.js'
import { IdIndex } from './id-index.js'
import type { KeptResult } from './kept.js'

const STATUSES: readonly JobResult['status'][] = [
  'completed',
  'failed',
  'expired',
  'cancelled',
  'quarantined',
]

export class LooseRecords {
  readonly #ids = new IdIndex()
  readonly #starts = float64Column()
  readonly #lengths = uint32Column()
  readonly #statuses = uint32Column()
  /** Plus 1; 0: not truncated. */
  readonly #truncatedTo = uint32Column()

  /** The first record of an id stands. */
  add({ id, status, truncatedTo, start, length }: KeptResult): void {
    const index = this.#ids.size
    if (this.#ids.add(id, index) >= 0) return
    this.#starts.set(index, start)
    this.#lengths.set(index, length)
    this.#statuses.set(index, STATUSES.indexOf(status))
    this.#truncatedTo.set(index, truncatedTo === undefined ? 0 : truncatedTo + 1)
  }

  get(id: string): KeptResult | null {
    const index = this.#ids.size === 0 ? -1 : this.#ids.get(id)
    if (index < 0) return null
    const truncated = this.#truncatedTo.get(index)
    return {
      id,
      status: STATUSES[this.#statuses.get(index)],
      ...(truncated === 0 ? {} : { truncatedTo: truncated - 1 }),
      start: this.#starts.get(index),
      length: this.#lengths.get(index),
    }
  }
}
