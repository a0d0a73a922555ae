// Finding items by id, for commands that name items: cancel, look at one (S35).
//
// No index leads from an id to its item: it would cost every item four bytes and a write, for rare
// commands. One pass over the item table serves any number of ids, in parts between which other work
// can go on: an item keeps its row for as long as it lives, so none is missed.

import type { FoundItems } from './explanation.js'
import type { IdHash } from './hash.js'
import { ITEM_ENDED, ITEM_FREE } from './items.js'
import { jobById } from './jobs.js'
import type { State } from './state.js'

/** Looks at `rows` rows of the table from `from` on. `ids` null: every item of the job. */
export function find(
  state: State,
  jobId: number,
  ids: readonly Uint8Array[] | null,
  from: number,
  rows: number,
): FoundItems {
  const { items } = state
  const end = Math.min(items.rows, from + rows)
  const found = {
    slots: [] as number[],
    numbers: [] as number[],
    next: end < items.rows ? end : -1,
  }
  const job = jobById(state, jobId)
  if (job.waiting + job.leased === 0) return { ...found, next: -1 }
  const wanted = ids === null ? null : new Wanted(state.idHash, ids)
  for (let slot = items.nextRow(from); slot >= 0 && slot < end; slot = items.nextRow(slot + 1)) {
    const itemState = items.state.get(slot)
    if (itemState === ITEM_FREE || itemState === ITEM_ENDED) continue
    if (items.job.get(slot) !== job.row || wanted?.has(state, slot) === false) continue
    found.slots.push(slot)
    found.numbers.push(items.sequence.get(slot))
  }
  return found
}

/** Digests of ids; their lengths tell most items apart without reading them. */
class Wanted {
  private readonly lengths = new Set<number>()
  private readonly digests = new Set<number>()

  constructor(
    private readonly hash: IdHash,
    ids: readonly Uint8Array[],
  ) {
    for (const id of ids) {
      this.lengths.add(id.length)
      this.digests.add(this.digest(id, 0, id.length))
    }
  }

  has({ items }: State, slot: number): boolean {
    const length = items.idBytes.get(slot)
    if (!this.lengths.has(length)) return false
    const at = items.offset.get(slot) + items.tokensBytes(slot)
    const { bytes } = items.arena.segment(items.segment.get(slot))
    return this.digests.has(this.digest(bytes, at, at + length))
  }

  /** 53 bits of the 64: enough to tell ids apart, and one number. */
  private digest(bytes: Uint8Array, from: number, to: number): number {
    this.hash.digest(bytes, from, to)
    return (this.hash.high >>> 11) * 0x100000000 + this.hash.low
  }
}
