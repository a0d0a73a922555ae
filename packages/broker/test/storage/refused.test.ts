// A store that could not be opened, though its threads were: they have ended when it says so.
import { EIO } from 'node:constants'
import fs from 'node:fs'
import { expect, test, vi } from 'vitest'
import { openStore } from '../../src/storage/open.ts'
import { folderInMemory } from './support/folder.ts'

const failing = { folder: '' }
vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>()
  const isFailing = (file: number) =>
    failing.folder !== '' && real.fstatSync(file).ino === real.statSync(failing.folder).ino
  const fsyncSync = (file: number) => {
    if (isFailing(file)) throw Object.assign(new Error('EIO: i/o error, fsync'), { errno: EIO })
    real.fsyncSync(file)
  }
  return { ...real, fsyncSync, default: { ...real, fsyncSync } }
})

test('a folder that cannot be synced refuses the store, and another broker may take it at once', async () => {
  const dataDir = folderInMemory()
  failing.folder = dataDir
  for (const _ of ['once', 'twice']) await expect(openStore(dataDir)).rejects.toThrow('EIO')
  expect(fs.readFileSync('/proc/self/maps', 'utf8')).not.toContain(dataDir)
  failing.folder = ''
  await (await openStore(dataDir)).close()
})
