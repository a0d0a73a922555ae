// Damaged data files: what can be read is served, what cannot is set aside and counted, and who cannot
// start says what to do.
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { BlockRow } from '../../src/storage/block-row.ts'
import { dataFile, openEnvironment } from '../../src/storage/environment.ts'
import { startFailure } from '../../src/storage/failure.ts'
import { headBytes } from '../../src/storage/item-block.ts'
import { blockKey, META_FORMAT, resultKey } from '../../src/storage/layout.ts'
import { segmentPath } from '../../src/storage/segment-file.ts'
import type { Store, StoreProblem } from '../../src/storage/store.ts'
import { checkStore } from '../../src/storage/verify.ts'
import { folderInMemory, store } from './support/folder.ts'
import { blockOf, item, job, settled } from './support/items.ts'
import { Random } from './support/random.ts'

const PAGE = 4096
const ALL = 1 << 30
const SHAPE = { model: 1, paddedLength: 8 }

async function filled(dataDir: string, groups = 4): Promise<void> {
  const one = await store(dataDir)
  await one.createJob(job(1))
  for (let group = 0; group < groups; group++) await addGroup(one, group)
  await one.close()
}

/** Ten items, three of them settled. */
async function addGroup(one: Store, group: number): Promise<void> {
  const items = Array.from({ length: 10 }, (_, i) => item(`${group}-${i}`, 5))
  const sequences = Float64Array.from(items, (_, i) => 10 * group + i + 1)
  await one.append({ job: 1, block: blockOf(1, items), sequences, acceptedAtMs: 0 })
  await one.settle([0, 1, 2].map((i) => settled(1, sequences[i], items[i])))
}

/** Turns a byte of a row's value. */
async function damage(dataDir: string, table: 'blocks' | 'results' | 'counters', key: Buffer) {
  const environment = openEnvironment(dataDir)
  const bytes = environment.tables[table].getBinary(key)!
  bytes[bytes.length - 1] ^= 1
  await environment.tables[table].put(key, bytes)
  await environment.root.flushed
  await environment.root.close()
}

/** Turns the last byte of a block in the log, or the first of its lengths. */
async function damageBlock(dataDir: string, key: Buffer, where: 'head' | 'end' = 'end') {
  const { path, at, bytes } = await placeInLog(dataDir, key)
  const segment = readFileSync(path)
  segment[at + (where === 'head' ? headBytes(0) : bytes - 1)] ^= 1
  writeFileSync(path, segment)
}

async function placeInLog(dataDir: string, key: Buffer) {
  const environment = openEnvironment(dataDir, { readOnly: true })
  const { place } = BlockRow.decode(environment.tables.blocks.getBinary(key)!)!
  await environment.root.close()
  return { path: segmentPath(dataDir, place.segment), at: place.offset, bytes: place.bytes }
}

async function problemsOf(dataDir: string): Promise<readonly string[]> {
  const environment = openEnvironment(dataDir, { readOnly: true })
  const { problems } = checkStore(environment)
  await environment.root.close()
  return problems
}

describe('damage', () => {
  test.each(['bytes', 'row'] as const)(
    'a block whose %s cannot be read is set aside, its items count as lost, the others go on',
    async (what) => {
      const dataDir = folderInMemory()
      await filled(dataDir)
      const key = blockKey(1, SHAPE, 11)
      if (what === 'row') await damage(dataDir, 'blocks', key)
      else await damageBlock(dataDir, key)
      expect((await problemsOf(dataDir)).length).toBeGreaterThan(0)
      const one = await store(dataDir)
      const told = new Promise<StoreProblem>((resolve) => {
        one.onProblem = resolve
      })
      const read = await one.read(1, SHAPE, ALL, ALL)
      expect(read!.sequences.length).toBe(21)
      expect(await told).toMatchObject({ lost: { job: 1, ...SHAPE, items: 7, tokens: 35 } })
      // A settlement of what is lost is left out.
      expect(Array.from(await one.settle([settled(1, 14, item('1-3', 5))]))).toEqual([0])
      await one.close()
      const again = await store(dataDir)
      expect(again.recovery.jobs[0]).toMatchObject({
        accepted: 40,
        settled: { completed: 12 },
        lost: 7,
        shapes: [{ items: 21 }],
      })
      await again.close()
      expect(
        (await problemsOf(dataDir)).every((text) => text.startsWith('set aside earlier')),
      ).toBe(true)
    },
  )

  test('a settlement that meets the damaged head of a block sets it aside too', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir)
    await damageBlock(dataDir, blockKey(1, SHAPE, 1), 'head')
    const one = await store(dataDir)
    const told = new Promise<StoreProblem>((resolve) => {
      one.onProblem = resolve
    })
    const [four, fourteen] = [settled(1, 4, item('0-3', 5)), settled(1, 14, item('1-3', 5))]
    expect(Array.from(await one.settle([four, fourteen]))).toEqual([0, 1])
    expect(await told).toMatchObject({ lost: { items: 7 } })
  })

  test('a settlement does not lose a result for tokens that are damaged since they were read', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir)
    await damageBlock(dataDir, blockKey(1, SHAPE, 1))
    const one = await store(dataDir)
    const told = new Promise<StoreProblem>((resolve) => {
      one.onProblem = resolve
    })
    expect(Array.from(await one.settle([settled(1, 4, item('0-3', 5))]))).toEqual([1])
    await one.read(1, SHAPE, ALL, ALL)
    expect(await told).toMatchObject({ lost: { items: 6 } })
  })

  test('a block of a broker that wrote no checksum of its head is settled as it was', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir)
    const { path, at, bytes } = await placeInLog(dataDir, blockKey(1, SHAPE, 1))
    const segment = readFileSync(path)
    const block = segment.subarray(at, at + bytes)
    block.writeUInt32LE(0, 28)
    block.writeUInt32LE(crc32(block.subarray(8)), 4)
    writeFileSync(path, segment)
    const one = await store(dataDir)
    expect(Array.from(await one.settle([settled(1, 4, item('0-3', 5))]))).toEqual([1])
  })

  test('at a start a tree in which nothing can be written is damage, and a refusal of the disk is one', () => {
    const dataDir = folderInMemory()
    const failing = (code: unknown) =>
      startFailure({ code, message: 'told so' }, dataFile(dataDir)).code
    expect([-30782, -30796].map(failing)).toEqual(['FABRIC_STORE_DAMAGED', 'FABRIC_STORE_DAMAGED'])
    expect([5, 28, 'EROFS'].map(failing)).toEqual([
      'FABRIC_DISK_FAILED',
      'FABRIC_DISK_FULL',
      'FABRIC_DISK_FAILED',
    ])
  })

  test('damaged results are left out, and readers go on behind them', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir)
    await damage(dataDir, 'results', resultKey(1, 3))
    const one = await store(dataDir)
    const offsets: number[] = []
    for (let offset = 0; offset < 12; ) {
      const { records, nextOffset } = await one.results(1, offset, ALL)
      records.forEach((_, i) => {
        offsets.push(nextOffset - records.length + i)
      })
      offset = nextOffset
    }
    expect(offsets).toEqual([0, 1, 2, 6, 7, 8, 9, 10, 11])
  })

  test('counts that cannot be read are made anew', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir)
    await damage(dataDir, 'counters', Buffer.from([0, 0, 0, 1]))
    const one = await store(dataDir)
    expect(one.recovery.problems.length).toBe(1)
    expect(one.recovery.jobs[0]).toMatchObject({
      accepted: 40,
      settled: { completed: 12 },
      shapes: [{ items: 28, tokens: 140 }],
      results: { firstOffset: 0, endOffset: 12 },
    })
    await one.resultsRead(1, 0)
    await one.close()
    expect(await problemsOf(dataDir)).toEqual([])
  })

  test('a newer format is refused by its number', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir, 1)
    const environment = openEnvironment(dataDir)
    await environment.tables.meta.put(META_FORMAT, Buffer.from([99, 0, 0, 0]))
    await environment.root.close()
    await expect(store(dataDir)).rejects.toMatchObject({
      code: 'FABRIC_STORE_VERSION',
      message: expect.stringContaining('format 99'),
    })
  })

  test('a file without one of its meta pages, and one that is no data file, are refused with what to do', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir, 1)
    const file = readFileSync(dataFile(dataDir))
    const refusal = {
      code: 'FABRIC_STORE_DAMAGED',
      message: expect.stringContaining('fabric-broker verify'),
    }
    for (const [from, to] of [
      [0, 1],
      [1, 2],
      [0, 2],
    ]) {
      writeFileSync(dataFile(dataDir), Buffer.from(file).fill(0x5a, from * PAGE, to * PAGE))
      await expect(store(dataDir)).rejects.toMatchObject(refusal)
    }
    writeFileSync(dataFile(dataDir), 'not ours, '.repeat(5000))
    await expect(store(dataDir)).rejects.toMatchObject(refusal)
  })

  test('a file that was cut starts with what is left of it, or says what to do', async () => {
    const dataDir = folderInMemory()
    await filled(dataDir, 20)
    const file = readFileSync(dataFile(dataDir))
    const random = new Random(1)
    for (let round = 0; round < 6; round++) {
      writeFileSync(dataFile(dataDir), file)
      truncateSync(dataFile(dataDir), 2 * PAGE + random.below(file.length - 2 * PAGE))
      try {
        const one = await store(dataDir)
        expect(one.recovery.problems[0]).toContain('too short')
        await one.close()
      } catch (error) {
        expect(error).toMatchObject({ code: 'FABRIC_STORE_DAMAGED' })
      }
    }
  })
})
