// The log by itself: what a start takes in from it, what it leaves, what it tells, and which files go.
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { SUBMIT_DUPLICATE } from '@fabric/core'
import { describe, expect, test } from 'vitest'
import { appendHeaderBytes, writeAppendHeader } from '../../src/storage/append-header.ts'
import { dataFile } from '../../src/storage/environment.ts'
import { SEGMENT_BYTES_MAX, segmentPath } from '../../src/storage/segment-file.ts'
import { checkStore } from '../../src/storage/verify.ts'
import { folderInMemory, store } from './support/folder.ts'
import { blockOf, columnsOf, item, job, settled } from './support/items.ts'
import { segmentsOf, withLife } from './support/job-life.ts'

const turn = (path: string, at: number) => {
  const bytes = readFileSync(path)
  bytes[at] ^= 1
  writeFileSync(path, bytes)
}

describe('the log', () => {
  test('a start takes in what the index had not: items in their order, ids, counts', async () => {
    const dataDir = folderInMemory()
    await withLife(dataDir, async (life) => {
      await life.append([item('a', 3)], [item('b', 3), item('c', 3)])
      await life.append([item('d', 3)])
      expect(life.ids()).toEqual([])
    })
    await withLife(dataDir, (life) => {
      expect(life.problems).toEqual([])
      expect(life.ids()).toEqual(['a', 'b', 'c', 'd'])
      const known = life.writer.lookup(columnsOf(blockOf(1, [item('c', 3)]), Float64Array.of(1)))
      expect(Array.from(known)).toEqual([SUBMIT_DUPLICATE])
      expect(life.writer.recovery([]).jobs[0]).toMatchObject({ accepted: 4 })
      expect(checkStore(life.environment).problems).toEqual([])
    })
  })

  test('long items, whose tokens are written from where they stand, are whole in the log and in the index', async () => {
    const dataDir = folderInMemory()
    const long = ['a', 'b', 'c'].map((id, i) => item(id, 5000, { seed: i }))
    await withLife(dataDir, async (life) => {
      await life.append(long)
      life.commit()
      expect(checkStore(life.environment).problems).toEqual([])
      await life.append([item('d', 5000)])
    })
    await withLife(dataDir, (life) => {
      expect(life.problems).toEqual([])
      expect(checkStore(life.environment).problems).toEqual([])
      expect(life.writer.recovery([]).jobs[0]).toMatchObject({ accepted: 4 })
    })
  })

  test('a start takes in settlements that the index had not, each once', async () => {
    const dataDir = folderInMemory()
    const items = ['a', 'b', 'c'].map((id) => item(id, 3))
    await withLife(dataDir, async (life) => {
      const [a, b] = await life.append(items)
      life.commit()
      const settledA = settled(1, a, items[0])
      expect(await life.settle([settledA])).toEqual([1])
      expect(await life.settle([settledA, settled(1, b, items[1])])).toEqual([0, 1])
      // Of an item that was not durable only the result is kept.
      const record = settled(1, 1, item('x', 1)).record
      await life.settle([{ job: 1, sequence: 77, shape: null, record }])
      expect(life.results()).toEqual([])
    })
    for (const _ of ['at the first start', 'at the second'])
      await withLife(dataDir, (life) => {
        expect(life.problems).toEqual([])
        expect([life.ids(), life.results()]).toEqual([['c'], ['a', 'b', 'x']])
        expect(checkStore(life.environment).problems).toEqual([])
      })
  })

  test('a settlement of what the index has not taken in brings it there first', async () => {
    const dataDir = folderInMemory()
    const items = ['a', 'b'].map((id) => item(id, 3))
    await withLife(dataDir, async (life) => {
      const [a] = await life.append(items)
      expect(await life.settle([settled(1, a, items[0])])).toEqual([1])
    })
    await withLife(dataDir, (life) => expect([life.ids(), life.results()]).toEqual([['b'], ['a']]))
  })

  test('settlements outlast a transaction that came to nothing', async () => {
    const dataDir = folderInMemory()
    const items = ['a', 'b', 'c'].map((id) => item(id, 3))
    await withLife(dataDir, async (life) => {
      const [a, b] = await life.append(items)
      life.commit()
      await life.settle([settled(1, a, items[0])])
      life.abort()
      expect(await life.settle([settled(1, a, items[0]), settled(1, b, items[1])])).toEqual([0, 1])
      life.abort()
      life.commit()
      expect([life.ids(), life.results()]).toEqual([['c'], ['a', 'b']])
      expect(checkStore(life.environment).problems).toEqual([])
    })
  })

  test('verify counts what the next start takes in', async () => {
    await withLife(folderInMemory(), async (life) => {
      await life.append([item('a', 3)])
      life.commit()
      const [b] = await life.append([item('b', 3)], [item('c', 3)])
      expect(checkStore(life.environment)).toMatchObject({ items: 3, ids: 3, problems: [] })
      await life.settle([settled(1, b, item('b', 3))])
      expect(checkStore(life.environment)).toMatchObject({ items: 2, results: 1, problems: [] })
    })
  })

  test('whatever part of the last append is missing, a start goes on with those before it, and tells nothing', async () => {
    const dataDir = folderInMemory()
    const path = segmentPath(dataDir, 1)
    const ends: number[] = []
    await withLife(dataDir, async (life) => {
      for (const id of ['a', 'b']) {
        await life.append([item(id, 3)])
        ends.push(readFileSync(path).length)
      }
    })
    const whole = readFileSync(path)
    for (let end = ends[0]; end < ends[1]; end += 8) {
      const copy = folderInMemory()
      copyFileSync(dataFile(dataDir), dataFile(copy))
      writeFileSync(segmentPath(copy, 1), whole)
      truncateSync(segmentPath(copy, 1), end)
      await withLife(copy, async (life) => {
        expect(life.problems).toEqual([])
        expect(life.ids()).toEqual(['a'])
        // It goes on in a segment of its own, and the next life finds that.
        await life.append([item('c', 3)])
      })
      await withLife(copy, (life) => expect(life.ids()).toEqual(['a', 'c']))
    }
  })

  test('of a write whose sync had not returned, what is whole is kept and what is not is left out', async () => {
    const dataDir = folderInMemory()
    await withLife(dataDir, (life) =>
      life.append([item('a', 3)], [item('item-b', 3)], [item('c', 3)]),
    )
    const path = segmentPath(dataDir, 1)
    turn(path, readFileSync(path).indexOf('item-b'))
    await withLife(dataDir, (life) => {
      expect(life.problems).toEqual([])
      expect(life.ids()).toEqual(['a', 'c'])
    })
  })

  test('an append that was on the disk and cannot be read is told, and those behind it are taken in', async () => {
    const dataDir = folderInMemory()
    await withLife(dataDir, async (life) => {
      for (const id of ['a', 'item-b', 'c']) await life.append([item(id, 3)])
    })
    const path = segmentPath(dataDir, 1)
    turn(path, readFileSync(path).indexOf('item-b'))
    await withLife(dataDir, (life) => {
      expect(checkStore(life.environment).problems).toEqual([])
      expect(life.problems).toEqual([
        expect.stringContaining('accepted items or settlements cannot be read'),
      ])
      expect(life.ids()).toEqual(['a', 'c'])
    })
  })

  test('bytes of a producer that look like an append are none, also behind a torn header', async () => {
    const dataDir = folderInMemory()
    const shape = { model: 1, paddedLength: 8 }
    const at = appendHeaderBytes(1)
    const block = { count: 1, tokens: 3, haveDeadline: false, firstSequence: 99, at, bytes: 16 }
    const forged = Buffer.alloc(at + 16)
    const guess = Buffer.alloc(16)
    const blocks = [{ ...block, shape, crc: 0 }]
    writeAppendHeader(forged, guess, 'accepted', 1, 32, blocks, forged.length)
    await withLife(dataDir, (life) => life.append([item('a', 3, { payload: forged })]))
    const path = segmentPath(dataDir, 1)
    turn(path, 40)
    await withLife(dataDir, (life) => expect(life.ids()).toEqual([]))
  })

  test('a segment of another store is left out and left there, and told, whatever its number', async () => {
    const [dataDir, other] = [folderInMemory(), folderInMemory()]
    for (const each of [dataDir, other])
      await withLife(each, (life) => life.append([item(each, 3)]))
    // A life and its end, so that the index knows the log beyond the first of them.
    const foreign = readFileSync(segmentPath(other, 1))
    writeFileSync(segmentPath(dataDir, 9), foreign)
    await withLife(dataDir, (life) => life.append([item('b', 3)]))
    writeFileSync(segmentPath(dataDir, 5), foreign)
    await withLife(dataDir, async (life) => {
      const told = expect.stringContaining('left there')
      expect(life.problems).toEqual([told, told])
      expect(checkStore(life.environment).problems).toEqual([told, told])
      expect(life.ids()).toEqual([dataDir, 'b'])
      await life.append([item('c', 3)])
      life.commit()
    })
    for (const segment of [5, 9])
      expect(readFileSync(segmentPath(dataDir, segment))).toEqual(foreign)
  })

  test('a log without its index is not begun anew over: the start says what to do and leaves it', async () => {
    const dataDir = folderInMemory()
    await withLife(dataDir, (life) => life.append([item('a', 3)]))
    const kept = readFileSync(dataFile(dataDir))
    rmSync(dataFile(dataDir))
    for (const _ of ['once', 'twice'])
      await expect(store(dataDir)).rejects.toMatchObject({
        code: 'FABRIC_STORE_DAMAGED',
        message: expect.stringContaining('restore'),
      })
    // Who was refused may put the copy back at once.
    expect(readFileSync('/proc/self/maps', 'utf8')).not.toContain(dataDir)
    rmSync(dataFile(dataDir))
    writeFileSync(dataFile(dataDir), kept)
    await withLife(dataDir, (life) => expect(life.ids()).toEqual(['a']))
  })

  test('a log that is shorter than the index knows it, or of which a segment is missing, is told', async () => {
    for (const how of ['shorter', 'missing']) {
      const dataDir = folderInMemory()
      await withLife(dataDir, async (life) => {
        await life.append([item('a', 3)])
        life.commit()
      })
      const path = segmentPath(dataDir, 1)
      if (how === 'shorter') truncateSync(path, 100)
      else rmSync(path)
      await withLife(dataDir, (life) => {
        const told = how === 'shorter' ? 'ends at byte 100' : 'segment 1 of the log is missing'
        expect(life.problems).toEqual([expect.stringContaining(told)])
        expect(checkStore(life.environment).problems.join()).toContain(told)
      })
    }
  })

  test('what only has the name of a segment is passed over: a folder, a number that is none, a link to nothing', async () => {
    const dataDir = folderInMemory()
    await withLife(dataDir, (life) => life.append([item('a', 3)]))
    mkdirSync(segmentPath(dataDir, 7))
    symlinkSync('/nowhere', segmentPath(dataDir, 2))
    for (const number of [0, 4_294_967_295, 9_999_999_999])
      writeFileSync(segmentPath(dataDir, number), 'nothing of ours, but long enough for a header')
    await withLife(dataDir, async (life) => {
      expect(life.problems).toEqual([])
      await life.append([item('b', 3)])
    })
    await withLife(dataDir, (life) => expect(life.ids()).toEqual(['a', 'b']))
  })

  test('after a write that failed another segment is begun, and nothing of the failed one is taken in', async () => {
    const dataDir = folderInMemory()
    await withLife(dataDir, async (life) => {
      await life.append([item('a', 3)])
      // The next segment cannot be made.
      life.writer.log.endSegment()
      Object.assign(life.writer.log, { dataDir: join(dataDir, 'none') })
      await expect(life.append([item('b', 3)])).rejects.toMatchObject({ code: 'ENOENT' })
      life.log.refuse()
      life.writer.rollBack(life.log.unindexed())
      expect(life.log.isEmpty).toBe(true)
    })
    await withLife(dataDir, async (life) => {
      await life.append([item('c', 3)])
      expect(segmentsOf(dataDir)).toContain('segment-0000000002.log')
    })
    await withLife(dataDir, (life) => expect(life.ids()).toEqual(['a', 'c']))
  })

  test('a segment is removed when all of it is settled and the index knows it', async () => {
    const dataDir = folderInMemory()
    const one = await store(dataDir)
    await one.createJob(job(1))
    // Three quarters of a segment each: the first two share one.
    const length = (SEGMENT_BYTES_MAX * 3) / 16
    const items = ['a', 'b', 'c'].map((id) => ({ ...item(id, 1), length }))
    for (const [index, { id }] of items.entries()) {
      const tokens = new Int32Array(length)
      const block = { ...blockOf(1, [item(id, 1)]), lengths: Int32Array.of(length), tokens }
      const sequences = Float64Array.of(index + 1)
      await one.append({ job: 1, block, sequences, acceptedAtMs: 0 })
    }
    // The index knows a settlement when its result has been read.
    const segmentsAfter = async (index: number, results: number) => {
      await one.settle([settled(1, index + 1, items[index])])
      await one.results(1, results, 1)
      return segmentsOf(dataDir).map((name) => Number(name.slice(8, -4)))
    }
    expect(segmentsOf(dataDir)).toHaveLength(2)
    expect(await segmentsAfter(2, 0)).toEqual([1])
    // Settlements stand in the log too.
    expect(await segmentsAfter(0, 1)).toEqual([1, 3])
    expect(await segmentsAfter(1, 2)).toEqual([3])
    await one.close()
    expect(segmentsOf(dataDir)).toEqual([])
  })
})
