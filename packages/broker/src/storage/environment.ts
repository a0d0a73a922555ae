// The data folder opened: the index, which is one LMDB environment with its tables, and the log's blocks
// for reading. Each thread that uses it opens it for itself; LMDB shares the map between them.
//
// A commit is durable when it returns: LMDB writes the pages, waits for fdatasync, then writes the
// meta page through a descriptor with O_DSYNC. lmdb's own `overlappingSync` would return before.
import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { FabricError } from '@fabric/protocol'
import { type Database, open, type RootDatabase } from 'lmdb'
import { BlockReader } from './block-reader.js'
import {
  DATA_FILE,
  FORMAT_VERSION,
  META_FORMAT,
  OLDEST_FORMAT_VERSION,
  TABLES,
  type TableName,
} from './layout.js'

export type Table = Database<Buffer, Buffer>

export interface Environment {
  readonly root: RootDatabase<Buffer, Buffer>
  readonly tables: Readonly<Record<TableName, Table>>
  readonly log: BlockReader
  readonly path: string
  readonly dataDir: string
}

/** Address space, not memory: the file may grow to it without being mapped anew. */
const MAP_BYTES = 2 ** 40
const PAGE_BYTES = 4096

// LMDB's meta pages, the first two of the file: a page header of 24 bytes, then these.
const META_MAGIC_AT = 24
const META_MAGIC = 0xbeefc0de
const META_LAST_PAGE_AT = 144
const META_TXN_AT = 152
const META_BYTES = 168

export const dataFile = (dataDir: string): string => join(dataDir, DATA_FILE)

/**
 * @param onProblem told what was found and mended, in words for the operator.
 * @throws FabricError FABRIC_STORE_DAMAGED, FABRIC_STORE_VERSION, FABRIC_DISK_FAILED
 */
export function openEnvironment(
  dataDir: string,
  { readOnly = false, noSync = false, onProblem = (_: string): void => {} } = {},
): Environment {
  const path = dataFile(dataDir)
  if (readOnly && !existsSync(path))
    throw new FabricError('FABRIC_NOT_FOUND', `${dataDir} holds no data of a broker (${DATA_FILE})`)
  checkFile(path, readOnly, onProblem)
  try {
    const root = open<Buffer, Buffer>({
      path,
      noSubdir: true,
      maxDbs: TABLES.length + 1,
      mapSize: MAP_BYTES,
      pageSize: PAGE_BYTES,
      overlappingSync: false,
      // With it a batch that cannot be committed rejects a promise of lmdb's own, which ends the thread.
      eventTurnBatching: false,
      compression: false,
      readOnly,
      noSync,
    } as Parameters<typeof open>[0]) as RootDatabase<Buffer, Buffer>
    const tables = Object.fromEntries(
      TABLES.map((name) => [
        name,
        root.openDB({ name, keyEncoding: 'binary', encoding: 'binary' }) as Table,
      ]),
    ) as Record<TableName, Table>
    checkVersion(tables.meta, path)
    return { root, tables, log: new BlockReader(dataDir), path, dataDir }
  } catch (cause) {
    throw openError(cause, path)
  }
}

function checkVersion(meta: Table, path: string): void {
  const version = meta.getBinary(META_FORMAT)?.readUInt32LE(0)
  if (version === undefined) return
  if (version < OLDEST_FORMAT_VERSION)
    throw new FabricError(
      'FABRIC_STORE_VERSION',
      `${path} has format ${version}, which was in use before the first release: end its jobs with the broker that wrote it, or give another --data-dir`,
    )
  if (version <= FORMAT_VERSION) return
  throw new FabricError(
    'FABRIC_STORE_VERSION',
    `${path} has format ${version}, this broker reads up to ${FORMAT_VERSION}: run a newer broker, or give another --data-dir`,
  )
}

/** About a damaged file. */
export const WHAT_TO_DO =
  'look with `fabric-broker verify --data-dir`, restore a copy of the folder, or start with another --data-dir'

function openError(cause: unknown, path: string): FabricError {
  if (cause instanceof FabricError) return cause
  const { code, message } = cause as { code?: string | number; message: string }
  const isSystem = typeof code === 'number' ? code > 0 : typeof code === 'string'
  return isSystem
    ? new FabricError('FABRIC_DISK_FAILED', `${path} cannot be opened: ${message}`, { cause })
    : new FabricError('FABRIC_STORE_DAMAGED', `${path} is damaged (${message}): ${WHAT_TO_DO}`, {
        cause,
      })
}

/**
 * LMDB maps the file and would die by SIGBUS beyond its end, so one that was cut is filled up with
 * zeros, which the checks of pages and blocks then find.
 */
function checkFile(path: string, readOnly: boolean, onProblem: (problem: string) => void): void {
  if (!existsSync(path)) return
  let file: number
  try {
    file = openSync(path, readOnly ? 'r' : 'r+')
  } catch (cause) {
    throw new FabricError(
      'FABRIC_DISK_FAILED',
      `${path} cannot be opened: ${(cause as Error).message}`,
      { cause },
    )
  }
  try {
    const { size } = fstatSync(file)
    if (size === 0) return
    const neededBytes = bytesByMeta(file)
    if (neededBytes === null)
      throw new FabricError(
        'FABRIC_STORE_DAMAGED',
        `${path} is damaged (its first two pages are not both meta pages): ${WHAT_TO_DO}`,
      )
    if (size >= neededBytes) return
    const cut = `${path} is ${neededBytes - size} bytes too short`
    if (readOnly)
      throw new FabricError(
        'FABRIC_STORE_DAMAGED',
        `${cut}: restore a copy of the folder, or start the broker, which goes on with what is left of it`,
      )
    ftruncateSync(file, neededBytes)
    onProblem(`${cut}: what stood there is lost; fabric-broker verify says what it was`)
  } finally {
    closeSync(file)
  }
}

/** What the newest meta page says the file holds; null when one is damaged: LMDB would die of it by SIGSEGV. */
function bytesByMeta(file: number): number | null {
  let newest: { transaction: bigint; bytes: number } | null = null
  for (const page of [0, 1]) {
    const meta = Buffer.alloc(META_BYTES)
    readSync(file, meta, 0, META_BYTES, page * PAGE_BYTES)
    if (meta.readUInt32LE(META_MAGIC_AT) !== META_MAGIC) return null
    const transaction = meta.readBigUInt64LE(META_TXN_AT)
    const bytes = (Number(meta.readBigUInt64LE(META_LAST_PAGE_AT)) + 1) * PAGE_BYTES
    if (newest === null || transaction > newest.transaction) newest = { transaction, bytes }
  }
  return newest?.bytes ?? null
}

interface TreeStats {
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

const pagesOf = (stats: TreeStats) =>
  stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages

/** As of the last commit. */
export function sizeOf({ root, tables }: Environment): { fileBytes: number; usedBytes: number } {
  const stats = root.getStats() as TreeStats & { lastPageNumber: number; free: TreeStats }
  let pages = 2 + pagesOf(stats) + pagesOf(stats.free)
  for (const name of TABLES) pages += pagesOf(tables[name].getStats() as TreeStats)
  return { fileBytes: (stats.lastPageNumber + 1) * PAGE_BYTES, usedBytes: pages * PAGE_BYTES }
}
