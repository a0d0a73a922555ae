// Segments of which little is left: what is left moves to another, and their files go.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blockKey } from '../../src/storage/layout.ts'
import { Reader } from '../../src/storage/reader.ts'
import { segmentPath } from '../../src/storage/segment-file.ts'
import { checkStore } from '../../src/storage/verify.ts'
import { folderInMemory, store } from './support/folder.ts'
import { blockOf, item, itemsOf, job, settled, shapeOf, type TestItem } from './support/items.ts'
import { type JobLife, segmentsOf, withLife } from './support/job-life.ts'
import { Random } from './support/random.ts'
import { afterLoss, filesOf, writeFiles } from './support/torn.ts'

/** With a step of 16 bytes: a block. */
const SEGMENT_BYTES = 2048
/** Nothing is moved before files take so much beyond what is left in them. */
const SPARE_BYTES = 4 * SEGMENT_BYTES
const ALL = 1 << 30
const SHAPE = { model: 1, paddedLength: 8 }

/** Makes a segment all but full. */
const filler = (name: string, segmentBytes = SEGMENT_BYTES): TestItem =>
  item(`filler-${name}`, segmentBytes / 4)

const names = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`)

interface Kept {
  readonly one: TestItem
  readonly sequence: number
}

/** Segments with three small items each, in two blocks, and a large one that is settled. */
async function fill(
  life: JobLife,
  kept: readonly string[],
  segmentBytes = SEGMENT_BYTES,
): Promise<Kept[]> {
  const all: Kept[] = []
  const toSettle: [number, TestItem][] = []
  for (const name of kept) {
    const small = [item(name, 3), item(`${name}'`, 4), item(`${name}''`, 5)]
    const large = filler(name, segmentBytes)
    const sequences = await life.append(small.slice(0, 2), [small[2], large])
    all.push(...small.map((one, i) => ({ one, sequence: sequences[i] })))
    toSettle.push([sequences[3], large])
  }
  life.commit()
  for (const [sequence, one] of toSettle) await life.settle([settled(1, sequence, one)])
  life.commit()
  return all
}

const fileBytes = (dataDir: string) =>
  segmentsOf(dataDir).reduce((sum, name) => sum + readFileSync(`${dataDir}/${name}`).length, 0)
const withSmallSegments = (dataDir: string, use: (life: JobLife) => Promise<void>) =>
  withLife(dataDir, use, SEGMENT_BYTES)
const idsOf = (kept: readonly Kept[]) => kept.map(({ one }) => one.id)

function expectInOrder(life: JobLife): void {
  expect(life.problems).toEqual([])
  expect(checkStore(life.environment).problems).toEqual([])
}

describe('compaction', () => {
  test('segments of which little is left are moved together, and their files go', async () => {
    const dataDir = folderInMemory()
    let ids: string[] = []
    await withSmallSegments(dataDir, async (life) => {
      ids = idsOf(await fill(life, names(20)))
      expect(segmentsOf(dataDir).length).toBeGreaterThan(20)
      expect(await life.compact()).toBeGreaterThan(12)
      // What is written last, and the copies of the last ones, stand beside it.
      expect(fileBytes(dataDir)).toBeLessThan(SPARE_BYTES + 2 * SEGMENT_BYTES)
      expect(life.ids()).toEqual(ids)
      expectInOrder(life)
    })
    await withSmallSegments(dataDir, async (life) => {
      expect(life.ids()).toEqual(ids)
      expectInOrder(life)
    })
  })

  test('blocks that stand far apart move with one append', async () => {
    const segmentBytes = 16 * SEGMENT_BYTES
    await withLife(
      folderInMemory(),
      async (life) => {
        const kept = await fill(life, names(8), segmentBytes)
        expect(await life.move()).toBe(2)
        expect(await life.compact()).toBeGreaterThan(0)
        expect(life.ids()).toEqual(idsOf(kept))
        expectInOrder(life)
      },
      segmentBytes,
    )
  })

  test('what was moved can be moved again', async () => {
    await withSmallSegments(folderInMemory(), async (life) => {
      const all: Kept[] = []
      for (const round of ['a', 'b', 'c']) {
        all.push(
          ...(await fill(
            life,
            [...names(12)].map((name) => `${round}-${name}`),
          )),
        )
        expect(await life.compact()).toBeGreaterThan(0)
      }
      expect(life.ids()).toEqual(idsOf(all))
      expectInOrder(life)
    })
  })

  test('a small store, segments of which a quarter is left, and the one that is written stay as they are', async () => {
    await withSmallSegments(folderInMemory(), async (life) => {
      await fill(life, names(2))
      expect(await life.compact()).toBe(0)
    })
    await withSmallSegments(folderInMemory(), async (life) => {
      const third = (name: string) => item(name, SEGMENT_BYTES / 12)
      const left: [number, TestItem][] = []
      for (const name of names(40)) {
        const [first, second] = await life.append(
          ['a', 'b', 'c'].map((part) => third(`${name}${part}`)),
        )
        life.commit()
        await life.settle([settled(1, first, third(`${name}a`))])
        left.push([second, third(`${name}b`)])
      }
      life.writer.log.endSegment()
      await life.settle(left.slice(20).map(([sequence, one]) => settled(1, sequence, one)))
      await life.append([item('last', 3)])
      life.commit()
      expect(life.writer.compaction.isDue(false)).toBe(true)
      expect(await life.compact()).toBe(0)
      expectInOrder(life)
    })
  })

  test('an item is settled once, whether before its block moves, meanwhile or afterwards', async () => {
    const dataDir = folderInMemory()
    const results: string[] = []
    await withSmallSegments(dataDir, async (life) => {
      const kept = await fill(life, names(12))
      const settle = async (which: readonly Kept[], expected = 1) => {
        const all = which.map(({ one, sequence }) => settled(1, sequence, one))
        expect(await life.settle(all)).toEqual(which.map(() => expected))
        if (expected === 1) results.push(...idsOf(which))
      }
      const [first, second, third, other] = kept
      // In memory, not in its row, when its block is copied.
      await settle([first])
      expect(await life.move()).toBe(1)
      await settle([other])
      expect(await life.move()).toBe(1)
      // Nothing of its block is left when the transaction comes.
      await settle([third])
      life.commit()
      await settle([second])
      await life.compact()
      await settle([first, second, third, other], 0)
      life.commit()
      expect(life.results().slice(12)).toEqual(results)
      expect(life.ids()).toEqual(idsOf(kept).filter((id) => !results.includes(id)))
      expectInOrder(life)
    })
  })

  test('a life may end between a move and its transaction, and after it', async () => {
    const dataDir = folderInMemory()
    let ids: string[] = []
    await withSmallSegments(dataDir, async (life) => {
      ids = idsOf(await fill(life, names(16)))
      expect(await life.move()).toBe(1)
      expect(await life.move()).toBe(1)
    })
    for (const commits of [false, true, false, true])
      await withSmallSegments(dataDir, async (life) => {
        expect(life.ids()).toEqual(ids)
        expectInOrder(life)
        expect(await life.move()).toBe(1)
        if (commits) life.commit()
      })
    await withSmallSegments(dataDir, async (life) => {
      await life.compact()
      expect(life.ids()).toEqual(ids)
      expect(fileBytes(dataDir)).toBeLessThan(SPARE_BYTES + 2 * SEGMENT_BYTES)
      expectInOrder(life)
    })
  })

  test('power may fail at any write of it', async () => {
    const dataDir = folderInMemory()
    const random = new Random(1)
    const losses = ['unsynced', 'cut', 'committing'] as const
    await withSmallSegments(dataDir, async (life) => {
      const ids = idsOf(await fill(life, names(20)))
      let steps = 0
      for (; life.writer.compaction.isDue(false) || life.writer.hasUnindexed; steps++) {
        const before = filesOf(dataDir)
        if ((await life.move()) === 0) life.commit()
        const after = filesOf(dataDir)
        for (const loss of losses) {
          const torn = join(folderInMemory(), 'data')
          writeFiles(torn, afterLoss(loss, before, after, random))
          await withSmallSegments(torn, async (next) => {
            expect(next.ids()).toEqual(ids)
            expectInOrder(next)
            await next.compact()
            expect(next.ids()).toEqual(ids)
            expectInOrder(next)
          })
        }
      }
      expect(steps).toBeGreaterThan(20)
    })
  })

  test('what a transaction that came to nothing was to take in waits for the next', async () => {
    const dataDir = folderInMemory()
    await withSmallSegments(dataDir, async (life) => {
      const kept = await fill(life, names(16))
      expect(await life.move()).toBe(1)
      life.abort()
      expectInOrder(life)
      await life.settle([settled(1, kept[0].sequence, kept[0].one)])
      expect(await life.move()).toBe(1)
      life.abort()
      life.commit()
      expect(existsSync(segmentPath(dataDir, 1))).toBe(false)
      expect(life.ids()).toEqual(idsOf(kept).slice(1))
      expectInOrder(life)
    })
  })

  test('what was refused is moved when there is room again', async () => {
    const dataDir = folderInMemory()
    await withSmallSegments(dataDir, async (life) => {
      const ids = idsOf(await fill(life, names(16)))
      for (const _ of ['the first block', 'the last one of its segment']) {
        life.log.addMoves(life.writer.compaction.step())
        life.log.refuse()
        life.writer.rollBack(life.log.unindexed())
      }
      expect(life.log.isEmpty).toBe(true)
      await life.compact()
      expect(existsSync(segmentPath(dataDir, 1))).toBe(false)
      expect(fileBytes(dataDir)).toBeLessThan(SPARE_BYTES + 2 * SEGMENT_BYTES)
      expect(life.ids()).toEqual(ids)
      expectInOrder(life)
    })
  })

  test('a damaged block does not move: it is set aside when it is met, and then its file goes', async () => {
    const dataDir = folderInMemory()
    await withSmallSegments(dataDir, async (life) => {
      const kept = await fill(life, names(16))
      const path = segmentPath(dataDir, 1)
      const bytes = readFileSync(path)
      bytes[bytes.indexOf("k0'")] ^= 1
      writeFileSync(path, bytes)
      await life.compact()
      expect(existsSync(path)).toBe(true)
      expect(existsSync(segmentPath(dataDir, 2))).toBe(false)
      const key = blockKey(1, SHAPE, kept[0].sequence)
      life.commit([{ kind: 'setAside', table: 'blocks', key }])
      expect(life.problems).toEqual([expect.stringContaining('2 items are lost')])
      expect(existsSync(path)).toBe(false)
      expect(life.ids()).toEqual(idsOf(kept).slice(2))
      expect(checkStore(life.environment).problems).toEqual([
        expect.stringContaining('set aside earlier'),
      ])
    })
  })

  test('what stands behind an append that is not whole moves, and what is of no block is passed over', async () => {
    const dataDir = folderInMemory()
    await withSmallSegments(dataDir, async (life) => {
      const [first] = await life.append([item('torn', SEGMENT_BYTES / 8)])
      const kept = await fill(life, names(16))
      await life.settle([settled(1, first, item('torn', SEGMENT_BYTES / 8))])
      life.commit()
      const path = segmentPath(dataDir, 1)
      const bytes = readFileSync(path)
      bytes[40] ^= 1
      writeFileSync(path, bytes)
      await life.compact()
      expect(existsSync(path)).toBe(false)
      expect(life.ids()).toEqual(idsOf(kept))
      expectInOrder(life)
    })
  })

  test('a reader goes on where blocks moved and files went', async () => {
    await withSmallSegments(folderInMemory(), async (life) => {
      const kept = await fill(life, names(20))
      const damaged: unknown[] = []
      const reader = new Reader(life.environment, (_, key) => damaged.push(key))
      const ids: string[] = []
      const read = () => ids.push(...itemsOf(reader.read(1, SHAPE, 1, ALL)!).map(({ id }) => id))
      for (let i = 0; i < 3; i++) read()
      await life.compact()
      while (ids.length < kept.length) read()
      expect(ids).toEqual(idsOf(kept))
      expect(damaged).toEqual([])
      for (const { sequence } of kept) expect(reader.find(sequence, 1)).not.toBeNull()
    })
  })

  test('blocks of a job that is deleted meanwhile go with it', async () => {
    const dataDir = folderInMemory()
    await withSmallSegments(dataDir, async (life) => {
      await fill(life, names(16))
      expect(await life.move()).toBe(1)
      life.commit([{ kind: 'deleteJob', number: 1 }])
      await life.compact()
      while (life.writer.hasWork) life.commit()
      expect(life.ids()).toEqual([])
      life.writer.log.endSegment()
      life.commit()
      expect(segmentsOf(dataDir)).toEqual([])
      expectInOrder(life)
    })
  })
})

describe('compaction of a running store', () => {
  const lengths = { segmentBytesMax: SEGMENT_BYTES, probeIntervalMs: 50 }

  /** Small items, one of each segment that it makes. */
  async function fillStore(one: Awaited<ReturnType<typeof store>>): Promise<Kept[]> {
    await one.createJob(job(1))
    const kept: Kept[] = []
    for (const [index, name] of names(24).entries()) {
      const items = [item(name, 3), filler(name)]
      const sequences = Float64Array.of(2 * index + 1, 2 * index + 2)
      await one.append({ job: 1, block: blockOf(1, items), sequences, acceptedAtMs: 0 })
      kept.push({ one: items[0], sequence: sequences[0] })
    }
    return kept
  }

  const settleFillers = (one: Awaited<ReturnType<typeof store>>, kept: readonly Kept[]) =>
    one.settle(kept.map((each) => settled(1, each.sequence + 1, filler(each.one.id))))

  test('it goes on by itself, and items are read and settled as ever', async () => {
    const dataDir = folderInMemory()
    const one = await store(dataDir, lengths)
    const kept = await fillStore(one)
    await settleFillers(one, kept)
    await expect.poll(() => fileBytes(dataDir), { timeout: 5000 }).toBeLessThan(2 * SPARE_BYTES)
    const read = await one.read(1, shapeOf(kept[0].one), ALL, ALL)
    expect(itemsOf(read!).map(({ id }) => id)).toEqual(idsOf(kept))
    const all = kept.map(({ one: each, sequence }) => settled(1, sequence, each))
    expect(Array.from(await one.settle(all))).toEqual(all.map(() => 1))
    await one.close()
    expect(segmentsOf(dataDir)).toEqual([])
  })

  test('nothing moves while the disk is short of its reserve; a later life does it', async () => {
    const dataDir = folderInMemory()
    const first = await store(dataDir, lengths)
    const kept = await fillStore(first)
    await first.close()
    const short = await store(dataDir, { ...lengths, diskReserveBytes: 1e15 })
    await settleFillers(short, kept)
    // Each is a transaction, with which a segment would be emptied.
    for (let i = 0; i < 60; i++) await short.updateJob(job(1))
    expect(segmentsOf(dataDir).length).toBeGreaterThan(24)
    await short.close()
    await store(dataDir, lengths)
    await expect.poll(() => fileBytes(dataDir), { timeout: 5000 }).toBeLessThan(2 * SPARE_BYTES)
  })

  test('what a failing disk refused to move is moved when it is well', async () => {
    const dataDir = folderInMemory()
    const faults = new Int32Array(new SharedArrayBuffer(8))
    const one = await store(dataDir, { ...lengths, faults })
    const kept = await fillStore(one)
    const settling = settleFillers(one, kept)
    for (let i = 0; i < 10; i++) {
      // A turn of the writing thread.
      await one.lookup(blockOf(1, [item('turn', 1)]))
      Atomics.store(faults, 0, i % 2 === 0 ? 5 : 0)
    }
    Atomics.store(faults, 0, 0)
    await settling
    await expect.poll(() => fileBytes(dataDir), { timeout: 5000 }).toBeLessThan(2 * SPARE_BYTES)
    const read = await one.read(1, shapeOf(kept[0].one), ALL, ALL)
    expect(itemsOf(read!).map(({ id }) => id)).toEqual(idsOf(kept))
  })
})
