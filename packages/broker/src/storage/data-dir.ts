// The folder of the data file: made when it is missing, and held by one broker at a time.
import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import net from 'node:net'
import { FabricError } from '@fabric/protocol'

export interface DirectoryLock {
  release(): void
}

/** @throws FabricError FABRIC_DISK_FAILED */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new FabricError(
      'FABRIC_DISK_FAILED',
      `the folder ${dataDir} cannot be made: ${(cause as Error).message}`,
      { field: 'dataDir', cause },
    )
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
