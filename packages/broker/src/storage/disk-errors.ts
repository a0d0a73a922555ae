// What a failed transaction means: the disk is full, the disk fails, or we have a defect.
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Failure } from './messages.js'

const EIO = 5
const ENOSPC = 28
const EDQUOT = 122
const MDB_MAP_FULL = -30792
const FULL_CODES: readonly unknown[] = [ENOSPC, EDQUOT, MDB_MAP_FULL, 'ENOSPC', 'EDQUOT']
// Pages that are not what their parents say: MDB_PAGE_NOTFOUND, MDB_CORRUPTED, MDB_INVALID,
// MDB_CURSOR_FULL, MDB_PAGE_FULL, MDB_INCOMPATIBLE, MDB_BAD_TXN (lmdb tells it of a commit in which a write
// met one of those), MDB_BAD_VALSIZE.
const TREE_DAMAGE: readonly unknown[] = [
  -30797, -30796, -30793, -30787, -30786, -30784, -30782, -30781,
]
/** LMDB reports a write that was cut short as EIO: with so little room left, the disk is full. */
const NO_ROOM_BYTES = 16 * 2 ** 20

/** Whether LMDB met a tree that no commit of its own can have left. */
export const isTreeDamage = (code: unknown): boolean => TREE_DAMAGE.includes(code)

/** null: not the disk's fault. */
export function diskFailure(error: unknown, path: string): Failure | null {
  const { code, message } = error as { code?: unknown; message?: string }
  // LMDB gives numbers, Node names that begin with E; our own refusals are neither.
  const isSystem = typeof code === 'string' && code.startsWith('E')
  if (typeof code !== 'number' && !isSystem) return null
  const isFull = FULL_CODES.includes(code) || (code === EIO && !hasRoom(path))
  return isFull
    ? { code: 'FABRIC_DISK_FULL', message: `no room for ${path}` }
    : { code: 'FABRIC_DISK_FAILED', message: `${path} refuses writes: ${message}` }
}

export const hasRoom = (path: string): boolean => freeBytes(path) >= NO_ROOM_BYTES

/** Room on the file system of the data file, Infinity when it cannot be told. */
export function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(dirname(path))
    return bavail * bsize
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
