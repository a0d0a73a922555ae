import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openStore, type StoreOptions } from '../../../src/storage/open.ts'
import type { Store } from '../../../src/storage/store.ts'

/** A folder that goes with the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'fabric-store-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The same in memory, where a sync takes no time. */
export function folderInMemory(): string {
  const path = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'fabric-store-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A store that is closed with the test, unless the test closed it. */
export async function store(dataDir: string, options: StoreOptions = {}): Promise<Store> {
  const opened = await openStore(dataDir, options)
  onTestFinished(() => opened.close().catch(() => {}))
  return opened
}
