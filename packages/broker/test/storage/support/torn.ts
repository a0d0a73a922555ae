// A disk that lost power: what it holds of two states of the data file, of which the first was synced.
// LMDB's two meta pages come first; a transaction counts when its meta page is there.
import type { Random } from './random.ts'

const PAGE = 4096
const SECTOR = 512
const META_PAGES_BYTES = 2 * PAGE

/**
 * `unsynced`: the data pages of the second state, whole, torn or dropped, and the old meta pages: what a
 * power cut leaves before the sync. `cut`: the same, and the file ends anywhere behind the first state.
 * `committing`: all data pages, and the meta page or not: the cut came at the last write. `lied`: the disk
 * said that it had synced and had not: any page is the old or the new one, the meta pages too.
 */
export type Loss = 'unsynced' | 'cut' | 'committing' | 'lied'
export const LOSSES: readonly Loss[] = ['unsynced', 'cut', 'committing', 'lied']

export function afterLoss(loss: Loss, before: Buffer, after: Buffer, random: Random): Buffer {
  const bytes = Math.max(before.length, after.length)
  const found = Buffer.alloc(bytes)
  before.copy(found)
  const firstData = loss === 'lied' ? 0 : META_PAGES_BYTES
  for (let at = firstData; at < after.length; at += PAGE) {
    const sectors = loss === 'committing' ? 8 : sectorsWritten(loss, random)
    after.copy(found, at, at, Math.min(after.length, at + SECTOR * sectors))
  }
  if (loss === 'committing')
    for (const at of [0, PAGE]) if (random.chance(0.5)) after.copy(found, at, at, at + PAGE)
  if (loss !== 'cut') return found
  return found.subarray(0, before.length + random.below(bytes - before.length + 1))
}

const sectorsWritten = (loss: Loss, random: Random): number =>
  loss === 'lied' ? random.pick([0, 8, 8, 8]) : random.pick([0, 8, 8, random.below(9)])
