// A disk that fills up, refuses, is slow: by errno put below the store, and by a small file system of
// its own where the test may make one.
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Store, StoreHealth } from '../../src/storage/store.ts'
import { folder, folderInMemory, store } from './support/folder.ts'
import { blockOf, item, job, settled, type TestItem } from './support/items.ts'

const ENOSPC = 28
const EIO = 5
const EROFS = 30

let sequence = 0
const append = (items: readonly TestItem[]) => ({
  job: 1,
  block: blockOf(1, items),
  sequences: Float64Array.from(items, () => ++sequence),
  acceptedAtMs: 0,
})
const codes = (answer: Uint8Array) => Array.from(answer)

/** Told as soon as the store is in that state. */
function healthOf(one: Store, state: StoreHealth['state']): Promise<StoreHealth> {
  return new Promise((resolve) => {
    one.onHealth = (health) => {
      if (health.state === state) resolve(health)
    }
    if (one.health.state === state) resolve(one.health)
  })
}

describe('a failing disk', () => {
  test.each([
    [ENOSPC, 'FABRIC_DISK_FULL'],
    [EIO, 'FABRIC_DISK_FAILED'],
    [EROFS, 'FABRIC_DISK_FAILED'],
  ])(
    'errno %i refuses appends as %s, keeps settlements, and is over when the disk is well',
    async (errno, code) => {
      const dataDir = folderInMemory()
      const faults = new Int32Array(new SharedArrayBuffer(8))
      const one = await store(dataDir, { faults, probeIntervalMs: 5 })
      await one.createJob(job(1))
      const items = [item('a', 3), item('b', 3)]
      const written = append(items)
      await one.append(written)
      // The index has them when this is answered.
      await one.find(0)

      const degraded = healthOf(one, 'degraded')
      faults[0] = errno
      await expect(one.append(append([item('c', 3)]))).rejects.toMatchObject({
        code,
        message: expect.stringContaining('segment-'),
      })
      expect(await degraded).toMatchObject({ state: 'degraded', code })
      await expect(one.append(append([item('d', 3)]))).rejects.toMatchObject({ code })
      // What is there can still be read, and what settles waits for the disk.
      const shape = { model: 1, paddedLength: 8 }
      expect((await one.read(1, shape, 100, 100))!.sequences.length).toBe(2)
      let isSettled = false
      const settling = one
        .settle([settled(1, written.sequences[0], items[0])])
        .finally(() => (isSettled = true))
      expect(codes(await one.lookup(blockOf(1, items)))).toEqual([1, 1])
      expect(isSettled).toBe(false)

      const ok = healthOf(one, 'ok')
      faults[0] = 0
      await ok
      expect(codes(await settling)).toEqual([1])
      // Nothing of a refused append was kept: its ids are new.
      expect(codes(await one.append(append([item('c', 3), item('a', 3)])))).toEqual([0, 1])
      await one.close()
      const again = await store(dataDir)
      expect(again.recovery.jobs[0]).toMatchObject({ accepted: 3, settled: { completed: 1 } })
    },
  )

  test('what the index has not taken in when the disk fails is read when the disk is well', async () => {
    const faults = new Int32Array(new SharedArrayBuffer(8))
    const one = await store(folderInMemory(), { faults, probeIntervalMs: 5 })
    await one.createJob(job(1))
    const degraded = healthOf(one, 'degraded')
    await one.append(append([item('a', 3)]))
    faults[0] = EIO
    const shape = { model: 1, paddedLength: 8 }
    const read = () => one.read(1, shape, 100, 100)
    await expect(read()).rejects.toMatchObject({ code: 'FABRIC_DISK_FAILED' })
    await degraded
    await expect(read()).rejects.toMatchObject({ code: 'FABRIC_DISK_FAILED' })
    const ok = healthOf(one, 'ok')
    faults[0] = 0
    await ok
    expect((await read())!.sequences.length).toBe(1)
  })

  test('results that were settled when the disk failed are read when it is well', async () => {
    const faults = new Int32Array(new SharedArrayBuffer(8))
    const one = await store(folderInMemory(), { faults, probeIntervalMs: 5 })
    await one.createJob(job(1))
    const items = [item('a', 3), item('b', 3)]
    const written = append(items)
    await one.append(written)
    await one.settle([settled(1, written.sequences[0], items[0])])
    const degraded = healthOf(one, 'degraded')
    faults[0] = EIO
    let isRead = false
    const reading = one.results(1, 0, 1000).finally(() => (isRead = true))
    await expect(one.append(append([item('c', 3)]))).rejects.toBeDefined()
    await degraded
    expect([one.resultRange(1).endOffset, isRead]).toEqual([1, false])
    faults[0] = 0
    expect((await reading).records.length).toBe(1)
  })

  test('settlements beyond maxHeldResultBytes are refused while the disk fails', async () => {
    const faults = new Int32Array(new SharedArrayBuffer(8))
    const one = await store(folderInMemory(), {
      faults,
      probeIntervalMs: 5,
      maxHeldResultBytes: 4000,
    })
    await one.createJob(job(1))
    const written = append([item('a', 3), item('b', 3)])
    await one.append(written)
    const degraded = healthOf(one, 'degraded')
    faults[0] = EIO
    const held = one.settle([settled(1, written.sequences[0], item('a', 3), 'v'.repeat(2000))])
    await degraded
    await expect(
      one.settle([settled(1, written.sequences[1], item('b', 3), 'v'.repeat(2000))]),
    ).rejects.toMatchObject({ code: 'FABRIC_DISK_FAILED' })
    faults[0] = 0
    expect(codes(await held)).toEqual([1])
  })

  test('a slow disk makes whoever waits for it share one commit', async () => {
    const faults = new Int32Array(new SharedArrayBuffer(8))
    const dataDir = folderInMemory()
    const one = await store(dataDir, { faults })
    await one.createJob(job(1))
    faults[1] = 20
    const first = one.append(append([item('first', 1)]))
    const rest = Array.from({ length: 50 }, (_, i) => one.append(append([item(`i${i}`, 1)])))
    const order: string[] = []
    first.then(() => order.push('first'))
    for (const each of rest) each.then(() => order.push('rest'))
    await Promise.all([first, ...rest])
    expect(order[0]).toBe('first')
    expect(order.length).toBe(51)
  })

  test('relaxed, an append is answered before it is written, and closing writes it', async () => {
    const dataDir = folderInMemory()
    const one = await store(dataDir, { sync: 'relaxed', syncIntervalMs: 60_000 })
    await one.createJob(job(1))
    expect(codes(await one.append(append([item('a', 3)])))).toEqual([0])
    expect(codes(await one.append(append([item('a', 3)])))).toEqual([1])
    await one.close()
    const again = await store(dataDir)
    expect(again.recovery.jobs[0].accepted).toBe(1)
  })

  test('relaxed, what was answered outlasts a disk that fails for a while', async () => {
    const faults = new Int32Array(new SharedArrayBuffer(8))
    const one = await store(folderInMemory(), {
      sync: 'relaxed',
      syncIntervalMs: 5,
      faults,
      probeIntervalMs: 5,
    })
    await one.createJob(job(1))
    const degraded = healthOf(one, 'degraded')
    faults[0] = EIO
    expect(codes(await one.append(append([item('a', 3)])))).toEqual([0])
    await degraded
    expect(codes(await one.lookup(blockOf(1, [item('a', 3)])))).toEqual([1])
    const ok = healthOf(one, 'ok')
    faults[0] = 0
    await ok
    expect((await one.read(1, { model: 1, paddedLength: 8 }, 1, 1))!.sequences.length).toBe(1)
  })
})

/** A file system of its own. */
function smallDisk(size: string, skip: (note: string) => void): string {
  const mountPoint = folder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', mountPoint])
  } catch {
    skip('only root can mount a small file system')
  }
  onTestFinished(() => {
    execFileSync('umount', ['-l', mountPoint])
  })
  return mountPoint
}

describe('a full disk', () => {
  test('a file system that fills up refuses appends, takes settlements, and accepts again when there is room', async ({
    skip,
  }) => {
    const mountPoint = smallDisk('12m', skip)
    const one = await store(join(mountPoint, 'data'), {
      diskReserveBytes: 2 * 2 ** 20,
      probeIntervalMs: 5,
    })
    await one.createJob(job(1))
    const kept: { sequence: number; one: TestItem }[] = []
    let refused: unknown = null
    for (let round = 0; refused === null && round < 200; round++) {
      const items = Array.from({ length: 50 }, (_, i) => item(`${round}-${i}`, 1000))
      const written = append(items)
      try {
        await one.append(written)
        items.forEach((each, i) => {
          kept.push({ sequence: written.sequences[i], one: each })
        })
      } catch (error) {
        refused = error
      }
    }
    expect(refused).toMatchObject({ code: 'FABRIC_DISK_FULL' })
    expect(kept.length).toBeGreaterThan(500)
    const settling = kept.map((each) => settled(1, each.sequence, each.one))
    for (let at = 0; at < settling.length; at += 50)
      expect(await one.settle(settling.slice(at, at + 50))).not.toContain(0)
    expect(codes(await one.append(append([item('room', 1000)])))).toEqual([0])
  })

  test('an idle store tells that the disk has filled up, and that it has room again', async ({
    skip,
  }) => {
    const mountPoint = smallDisk('12m', skip)
    const one = await store(join(mountPoint, 'data'), {
      diskReserveBytes: 4 * 2 ** 20,
      probeIntervalMs: 5,
    })
    const other = join(mountPoint, 'other')
    const degraded = healthOf(one, 'degraded')
    writeFileSync(other, Buffer.alloc(10 * 2 ** 20))
    expect(await degraded).toMatchObject({ code: 'FABRIC_DISK_FULL' })
    const ok = healthOf(one, 'ok')
    rmSync(other)
    await ok
  })

  test('without a reserve, appends that find no room are refused with all that waited behind them', async ({
    skip,
  }) => {
    const dataDir = join(smallDisk('12m', skip), 'data')
    const options = { diskReserveBytes: 0, probeIntervalMs: 5 }
    const one = await store(dataDir, options)
    await one.createJob(job(1))
    let accepted = 0
    const refusals: unknown[] = []
    const submit = async (lane: number) => {
      for (let round = 0; round < 200 && refusals.length < 4; round++) {
        const items = Array.from({ length: 50 }, (_, i) => item(`${lane}-${round}-${i}`, 1000))
        await one.append(append(items)).then(
          () => (accepted += items.length),
          (error) => refusals.push(error),
        )
      }
    }
    await Promise.all([0, 1, 2, 3].map(submit))
    for (const error of refusals) expect(error).toMatchObject({ code: 'FABRIC_DISK_FULL' })
    expect(accepted).toBeGreaterThan(500)
    await one.close()
    const again = await store(dataDir, options)
    expect(again.recovery).toMatchObject({ problems: [], jobs: [{ accepted }] })
  })

  test('a store is not opened where not even its lock file has room, and says so', async ({
    skip,
  }) => {
    const mountPoint = smallDisk('64k', skip)
    expect(() => writeFileSync(join(mountPoint, 'other'), Buffer.alloc(2 ** 17))).toThrow(/ENOSPC/)
    await expect(store(mountPoint)).rejects.toMatchObject({ code: 'FABRIC_DISK_FULL' })
  })

  test('while only the reserve is left the health says so, from the start on, and what is there goes on', async ({
    skip,
  }) => {
    const mountPoint = smallDisk('12m', skip)
    const dataDir = join(mountPoint, 'data')
    const other = join(mountPoint, 'other')
    const options = { diskReserveBytes: 4 * 2 ** 20, probeIntervalMs: 5 }
    const one = await store(dataDir, options)
    await one.createJob(job(1))
    const written = append([item('a', 3)])
    await one.append(written)
    writeFileSync(other, Buffer.alloc(9 * 2 ** 20))
    const degraded = healthOf(one, 'degraded')
    const late = append([item('b', 3)])
    expect(await degraded).toMatchObject({
      message: expect.stringContaining('diskReserveBytes'),
    })
    await expect(one.append(late)).rejects.toMatchObject({ code: 'FABRIC_DISK_FULL' })
    expect(codes(await one.settle([settled(1, written.sequences[0], item('a', 3))]))).toEqual([1])
    await one.close()
    const again = await store(dataDir, options)
    await healthOf(again, 'degraded')
    rmSync(other)
    await healthOf(again, 'ok')
    expect(codes(await again.append(late))).toEqual([0])
  })
})
