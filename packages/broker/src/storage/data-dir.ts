// The folder of the data file: made when it is missing, and held by one broker at a time.
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import net from 'node:net'
import { join, resolve } from 'node:path'
import { FabricError } from '@fabric/protocol'
import { makeFolder } from '../folder.js'
import { DATA_FILE } from './layout.js'
import { segmentPath, segmentsIn } from './segment-file.js'

const LOCK_FILE = `${DATA_FILE}-lock`
/** One page: the header and the first 60 readers, of which a broker has two. */
const LOCK_FILE_BYTES = 4096

export interface DirectoryLock {
  release(): void
}

/** @throws FabricError FABRIC_DISK_FAILED */
export function makeDataDir(dataDir: string): void {
  try {
    makeFolder(resolve(dataDir), 0o700)
    if (!statSync(dataDir).isDirectory()) throw new Error('it is a file')
  } catch (cause) {
    throw new FabricError(
      'FABRIC_DISK_FAILED',
      `the folder ${dataDir} cannot be made: ${(cause as Error).message}`,
      { field: 'dataDir', cause },
    )
  }
}

/** Only under the lock. @throws FabricError FABRIC_DISK_FAILED */
export function removeData(dataDir: string): void {
  const segments = segmentsIn(dataDir).map(({ segment }) => segmentPath(dataDir, segment))
  for (const path of [join(dataDir, DATA_FILE), join(dataDir, LOCK_FILE), ...segments]) {
    try {
      rmSync(path, { force: true })
    } catch (cause) {
      throw new FabricError(
        'FABRIC_DISK_FAILED',
        `${path} cannot be removed: ${(cause as Error).message}`,
        { cause },
      )
    }
  }
}

/** A file that was just made survives a power cut only when its folder was synced too. */
export function syncDirectory(dataDir: string): void {
  const folder = openSync(dataDir, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/**
 * Held until it is released or the process ends, however it ends: the kernel closes an abstract socket
 * with its process. Brokers in other network namespaces are not seen.
 * @throws FabricError FABRIC_STORE_IN_USE
 */
export async function lockDataDir(dataDir: string): Promise<DirectoryLock> {
  const { dev, ino } = statSync(dataDir, { bigint: true })
  const lock = net.createServer((socket) => socket.destroy())
  try {
    await new Promise<void>((resolve, reject) => {
      lock.once('error', reject)
      lock.listen(`\0fabric-store-${dev}-${ino}`, resolve)
    })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause
    throw new FabricError('FABRIC_STORE_IN_USE', `another broker has ${dataDir} open`, {
      field: 'dataDir',
    })
  }
  lock.unref()
  return { release: () => lock.close() }
}

/**
 * LMDB makes its lock file longer without writing to it, maps it and would die by SIGBUS at its first
 * write where the disk has no room for that page. So it is written before. Only before this process has
 * opened the environment: closing any descriptor of the file would drop the locks that LMDB holds on it,
 * and the next reader from outside would begin its table of readers anew.
 * @throws FabricError FABRIC_DISK_FULL, FABRIC_DISK_FAILED
 */
export function reserveLockFile(dataDir: string): void {
  const path = join(dataDir, LOCK_FILE)
  try {
    const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o644)
    try {
      if (fstatSync(file).blocks === 0) writeSync(file, Buffer.alloc(LOCK_FILE_BYTES), 0)
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new FabricError(
      code === 'ENOSPC' || code === 'EDQUOT' ? 'FABRIC_DISK_FULL' : 'FABRIC_DISK_FAILED',
      `${path} cannot be opened: ${message}`,
      { field: 'dataDir', cause },
    )
  }
}
