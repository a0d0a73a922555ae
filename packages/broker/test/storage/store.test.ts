import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SUBMIT_ACCEPTED, SUBMIT_CONFLICT, SUBMIT_DUPLICATE, SUBMIT_QUEUE_FULL } from '@fabric/core'
import { describe, expect, test } from 'vitest'
import { folder, store } from './support/folder.ts'
import {
  blockOf,
  item,
  itemsOf,
  job,
  settled,
  shapeOf,
  type TestItem,
  textOf,
} from './support/items.ts'

let sequence = 0
const append = (jobNumber: number, items: readonly TestItem[]) => {
  const sequences = Float64Array.from(items, () => ++sequence)
  return { job: jobNumber, block: blockOf(jobNumber, items), sequences, acceptedAtMs: 5000 }
}
const codes = (answer: Uint8Array) => Array.from(answer)
const ALL = 1_000_000

describe('store', () => {
  test('gives back what was appended, after a restart too', async () => {
    const dataDir = folder()
    const first = await store(dataDir)
    await first.createJob(job(1))
    const items = [
      item('a', 3),
      item('b', 9, { payload: Uint8Array.of(1, 2, 3) }),
      item('c', 8, { seed: 100 }),
      item('é', 16),
    ]
    const written = append(1, items)
    expect(codes(await first.append(written))).toEqual([0, 0, 0, 0])
    const read = await first.read(1, { model: 1, paddedLength: 8 }, ALL, ALL)
    expect(itemsOf(read!).map(({ id }) => id)).toEqual(['a', 'c'])
    expect(await first.read(1, { model: 1, paddedLength: 8 }, ALL, ALL)).toBeNull()
    await first.close()

    const second = await store(dataDir)
    const [recovered] = second.recovery.jobs
    expect(recovered).toMatchObject({ ...job(1), accepted: 4, lost: 0 })
    expect(recovered.shapes).toEqual([
      { model: 1, paddedLength: 8, items: 2, tokens: 11 },
      { model: 1, paddedLength: 16, items: 2, tokens: 25 },
    ])
    expect(second.recovery.lastSequence).toBe(written.sequences[3])
    const again = await second.read(1, { model: 1, paddedLength: 16 }, ALL, ALL)
    expect(itemsOf(again!)).toEqual([
      { ...items[1], sequence: written.sequences[1] },
      { ...items[3], sequence: written.sequences[3] },
    ])
    expect(Array.from(again!.acceptedAtMs)).toEqual([5000, 5000])
  })

  test('knows ids: of the block itself, of blocks under way, of earlier lives (S36)', async () => {
    const dataDir = folder()
    const first = await store(dataDir)
    await first.createJob(job(1))
    await first.createJob(job(2))
    const twice = append(1, [item('a', 3), item('a', 3), item('a', 4)])
    const underWay = append(1, [item('a', 3), item('b', 3)])
    const [one, two, other] = await Promise.all([
      first.append(twice),
      first.append(underWay),
      first.append(append(2, [item('a', 5)])),
    ])
    expect(codes(one)).toEqual([SUBMIT_ACCEPTED, SUBMIT_DUPLICATE, SUBMIT_CONFLICT])
    expect(codes(two)).toEqual([SUBMIT_DUPLICATE, SUBMIT_ACCEPTED])
    expect(codes(other)).toEqual([SUBMIT_ACCEPTED])
    await first.close()
    const second = await store(dataDir)
    const known = await second.lookup(blockOf(1, [item('b', 3), item('b', 4), item('c', 1)]))
    expect(codes(known)).toEqual([SUBMIT_DUPLICATE, SUBMIT_CONFLICT, SUBMIT_ACCEPTED])
    expect(second.recovery.jobs.map(({ accepted }) => accepted)).toEqual([2, 1])
  })

  test('leaves out items without a sequence', async () => {
    const one = await store(folder())
    await one.createJob(job(1))
    const written = append(1, [item('a', 3), item('b', 3)])
    written.sequences[1] = 0
    expect(codes(await one.append(written))).toEqual([SUBMIT_ACCEPTED, SUBMIT_QUEUE_FULL])
    expect(codes(await one.lookup(blockOf(1, [item('b', 3)])))).toEqual([SUBMIT_ACCEPTED])
  })

  test('settles an item once, and keeps one result of it', async () => {
    const dataDir = folder()
    const first = await store(dataDir)
    await first.createJob(job(1))
    const items = [item('a', 3), item('b', 5), item('c', 7)]
    const written = append(1, items)
    await first.append(written)
    const [a, b] = [
      settled(1, written.sequences[0], items[0]),
      settled(1, written.sequences[1], items[1]),
    ]
    const late = settled(1, written.sequences[0], items[0], 'late')
    expect(codes(await first.settle([a, late]))).toEqual([1, 0])
    expect(codes(await first.settle([late, b]))).toEqual([0, 1])
    expect(first.resultRange(1)).toEqual({ job: 1, firstOffset: 0, endOffset: 2 })
    await first.close()
    const second = await store(dataDir)
    expect(second.recovery.jobs[0]).toMatchObject({
      accepted: 3,
      settled: { completed: 2 },
      shapes: [{ items: 1, tokens: 7 }],
      results: { firstOffset: 0, endOffset: 2, readOffset: 0 },
    })
    const { records, nextOffset } = await second.results(1, 0, ALL)
    expect(records.map(({ id, value }) => [textOf(id), textOf(value)])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ])
    expect(nextOffset).toBe(2)
    const rest = await second.read(1, { model: 1, paddedLength: 8 }, ALL, ALL)
    expect(itemsOf(rest!).map(({ id }) => id)).toEqual(['c'])
    expect(await second.find(written.sequences[0])).toBeNull()
    expect(itemsOf((await second.find(written.sequences[2]))!)[0].id).toBe('c')
    // The last of the block takes the block with it; nothing of it can be settled any more.
    expect(codes(await second.settle([settled(1, written.sequences[2], items[2])]))).toEqual([1])
    expect(codes(await second.settle([a]))).toEqual([0])
    expect(await second.find(written.sequences[2])).toBeNull()
  })

  test('a result of an item that was not durable is kept without it', async () => {
    const one = await store(folder())
    await one.createJob(job(1))
    const record = settled(1, 1, item('x', 1)).record
    expect(codes(await one.settle([{ job: 1, sequence: 9, shape: null, record }]))).toEqual([1])
    expect((await one.results(1, 0, ALL)).records.length).toBe(1)
  })

  test('reads a bounded number of tokens and bytes at a time, and goes on behind them', async () => {
    const one = await store(folder())
    await one.createJob(job(1))
    const items = Array.from({ length: 5000 }, (_, i) => item(`i${i}`, 8, { seed: i }))
    for (let at = 0; at < items.length; at += 500)
      await one.append(append(1, items.slice(at, at + 500)))
    const seen: string[] = []
    for (;;) {
      const read = await one.read(1, shapeOf(items[0]), 100, ALL)
      if (read === null) break
      expect(read.sequences.length).toBeLessThanOrEqual(13)
      seen.push(...itemsOf(read).map(({ id }) => id))
    }
    expect(seen).toEqual(items.map(({ id }) => id))
    const more = append(1, [item('more', 8)])
    await one.append(more)
    expect(itemsOf((await one.read(1, shapeOf(items[0]), 1, 1))!)[0].id).toBe('more')
  })

  test('results are read in pieces of at most maxBytes, and dropped when they were read and room is needed', async () => {
    const one = await store(folder(), { maxKeptResultBytes: 100_000 })
    await one.createJob(job(1))
    const items = Array.from({ length: 300 }, (_, i) => item(`i${i}`, 8))
    const written = append(1, items)
    await one.append(written)
    for (let at = 0; at < 300; at += 50)
      await one.settle(
        items
          .slice(at, at + 50)
          .map((each, i) => settled(1, written.sequences[at + i], each, 'v'.repeat(1000))),
      )
    const ids: string[] = []
    for (let offset = 0; offset < 300; ) {
      const { records, nextOffset } = await one.results(1, offset, 10_000)
      expect(records.length).toBeLessThanOrEqual(9)
      ids.push(...records.map(({ id }) => textOf(id)))
      offset = nextOffset
    }
    expect(ids).toEqual(items.map(({ id }) => id))
    const unread = await one.resultsRead(1, 150)
    expect(unread).toBe(150 * 1032)
    expect(one.resultRange(1).firstOffset).toBeGreaterThan(0)
    await expect(one.results(1, 0, 10)).rejects.toMatchObject({ code: 'FABRIC_RESULTS_GONE' })
    expect((await one.results(1, 150, 10)).records.length).toBe(1)
    expect(await one.resultsRead(1, 300)).toBe(0)
  })

  test('a deleted job is gone with its items, ids and results, also when the broker ended in between', async () => {
    const dataDir = folder()
    const first = await store(dataDir)
    await first.createJob(job(1))
    await first.createJob(job(2))
    // More rows than one transaction takes away.
    const appends = Array.from({ length: 400 }, (_, at) => append(1, [item(`i${at}`, 8)]))
    await Promise.all(appends.map((each) => first.append(each)))
    await first.append(append(2, [item('kept', 8)]))
    await first.deleteJob(1)
    await first.close()
    const second = await store(dataDir)
    expect(second.recovery.jobs.map(({ number }) => number)).toEqual([2])
    await expect(second.append(append(1, [item('late', 8)]))).rejects.toMatchObject({
      code: 'FABRIC_NOT_FOUND',
    })
    expect(await second.read(1, { model: 1, paddedLength: 8 }, ALL, ALL)).toBeNull()
    expect(await second.read(2, { model: 1, paddedLength: 8 }, ALL, ALL)).not.toBeNull()
  })

  test('an append that comes with the end of its job is refused alone', async () => {
    const one = await store(folder())
    await one.createJob(job(1))
    await one.createJob(job(2))
    const [deleted, late, other] = await Promise.allSettled([
      one.deleteJob(1),
      one.append(append(1, [item('late', 8)])),
      one.append(append(2, [item('other', 8)])),
    ])
    expect(deleted.status).toBe('fulfilled')
    expect(late).toMatchObject({ status: 'rejected', reason: { code: 'FABRIC_NOT_FOUND' } })
    expect(other.status).toBe('fulfilled')
    expect(one.health.state).toBe('ok')
    expect(codes(await one.lookup(blockOf(2, [item('other', 8)])))).toEqual([SUBMIT_DUPLICATE])
  })

  test('a second broker is refused', async () => {
    const dataDir = folder()
    await store(dataDir)
    await expect(store(dataDir)).rejects.toMatchObject({ code: 'FABRIC_STORE_IN_USE' })
  })

  test('a folder that is a file, or stands where none can be made, is refused at any depth', async () => {
    const file = join(folder(), 'file')
    writeFileSync(file, '')
    for (const path of [file, join(file, 'data'), '/proc/nope', '/proc/nope/deep/er'])
      await expect(store(path)).rejects.toMatchObject({ code: 'FABRIC_DISK_FAILED' })
  })
})
