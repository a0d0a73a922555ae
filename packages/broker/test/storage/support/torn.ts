// A disk that lost power: what its folder holds of two states of a data folder, of which the first was
// synced. Of the index LMDB's two meta pages come first; a transaction counts when its meta page is there.
// Segments of the log only grow.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DATA_FILE } from '../../../src/storage/layout.ts'
import type { Random } from './random.ts'

const PAGE = 4096
const SECTOR = 512
const META_PAGES_BYTES = 2 * PAGE
/** Of a segment: synced before anything is appended to it. */
const SEGMENT_HEADER_BYTES = 32

/**
 * `unsynced`: the bytes of the second state, whole, torn or dropped, and the old meta pages: what a power
 * cut leaves before the sync. `cut`: the same, and the files end anywhere behind the first state.
 * `committing`: all bytes, and the meta page or not: the cut came at the last write. `lied`: the disk said
 * that it had synced and had not: any page is the old or the new one, the meta pages too.
 */
export type Loss = 'unsynced' | 'cut' | 'committing' | 'lied'
export const LOSSES: readonly Loss[] = ['unsynced', 'cut', 'committing', 'lied']

/** By name. */
export type Files = ReadonlyMap<string, Buffer>

/** The index first: what it refers to in the log is there when the log is read behind it. */
export function filesOf(dataDir: string): Files {
  const segments = () => readdirSync(dataDir).filter((name) => name.startsWith('segment-'))
  const read = (name: string): [string, Buffer] => [name, readFileSync(join(dataDir, name))]
  return new Map([read(DATA_FILE), ...segments().map(read)])
}

export function writeFiles(dataDir: string, files: Files): void {
  mkdirSync(dataDir)
  for (const [name, bytes] of files) writeFileSync(join(dataDir, name), bytes)
}

export function afterLoss(loss: Loss, before: Files, after: Files, random: Random): Files {
  const left = new Map<string, Buffer>()
  for (const [name, bytes] of after) {
    const old = before.get(name) ?? Buffer.alloc(0)
    left.set(name, lossOfFile(loss, old, bytes, name === DATA_FILE, random))
  }
  // What was removed may be there again; it went when the transaction that needs it no more was synced.
  for (const [name, bytes] of before)
    if (!after.has(name) && (loss !== 'lied' || random.chance(0.5))) left.set(name, bytes)
  return left
}

function lossOfFile(
  loss: Loss,
  before: Buffer,
  after: Buffer,
  isIndex: boolean,
  random: Random,
): Buffer {
  const bytes = Math.max(before.length, after.length)
  const found = Buffer.alloc(bytes)
  before.copy(found)
  const firstData = loss === 'lied' || !isIndex ? 0 : META_PAGES_BYTES
  for (let at = firstData; at < after.length; at += PAGE) {
    const sectors = loss === 'committing' ? 8 : sectorsWritten(loss, random)
    after.copy(found, at, at, Math.min(after.length, at + SECTOR * sectors))
  }
  if (loss !== 'lied' && !isIndex) after.copy(found, 0, 0, SEGMENT_HEADER_BYTES)
  if (loss === 'committing' && isIndex)
    for (const at of [0, PAGE]) if (random.chance(0.5)) after.copy(found, at, at, at + PAGE)
  if (loss !== 'cut') return found
  const least = isIndex ? before.length : Math.max(before.length, SEGMENT_HEADER_BYTES)
  return found.subarray(0, least + random.below(bytes - least + 1))
}

const sectorsWritten = (loss: Loss, random: Random): number =>
  loss === 'lied' ? random.pick([0, 8, 8, 8]) : random.pick([0, 8, 8, random.below(9)])
