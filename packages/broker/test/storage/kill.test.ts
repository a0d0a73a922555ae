// kill -9 in the middle of appends and settlements, again and again on the same data.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { openEnvironment } from '../../src/storage/environment.ts'
import { SEGMENT_BYTES_MAX } from '../../src/storage/segment-file.ts'
import { checkStore } from '../../src/storage/verify.ts'
import { folder, store } from './support/folder.ts'
import { textOf } from './support/items.ts'
import { Random } from './support/random.ts'

const CHILD = fileURLToPath(new URL('support/child.mjs', import.meta.url))
const ROUNDS = Number(process.env.KILL_ROUNDS ?? 6)
const ALL = 1 << 30

interface Acknowledged {
  readonly appended: Set<number>
  readonly settled: Set<number>
}

/** In every other life what is left of segments is moved all the time. */
const SEGMENT_BYTES = [4096, SEGMENT_BYTES_MAX]

/** Kills the child when it has acknowledged so many things in this life. */
async function liveUntilKilled(
  dataDir: string,
  segmentBytes: number,
  lines: number,
  seen: Acknowledged,
): Promise<void> {
  const child = spawn(process.execPath, [CHILD, dataDir, String(segmentBytes)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  let left = lines
  for await (const line of createInterface({ input: child.stdout })) {
    // The kill may have cut the last line.
    if (!line.endsWith('.')) continue
    const [kind, ...numbers] = line.slice(0, -2).split(' ')
    const [first, count] = numbers.map(Number)
    if (kind === 'a') for (let i = 0; i < count; i++) seen.appended.add(first + i)
    if (kind === 's') for (const one of numbers) seen.settled.add(Number(one))
    left -= 1
    if (left === 0) child.kill('SIGKILL')
  }
  expect((await exit)[1]).toBe('SIGKILL')
}

test('after kill -9 all that was acknowledged is there, and each item has one result at most', async () => {
  const dataDir = folder()
  const random = new Random(Number(process.env.SEED ?? 1))
  const seen: Acknowledged = { appended: new Set(), settled: new Set() }
  for (let round = 0; round < ROUNDS; round++) {
    await liveUntilKilled(dataDir, SEGMENT_BYTES[round % 2], 1 + random.below(40), seen)
    const environment = openEnvironment(dataDir, { readOnly: true })
    expect(checkStore(environment).problems).toEqual([])
    await environment.root.close()
  }
  const after = await store(dataDir)
  const [{ accepted, settled, shapes }] = after.recovery.jobs
  const results: number[] = []
  for (let offset = 0; ; ) {
    const { records, nextOffset } = await after.results(1, offset, 1 << 20)
    results.push(...records.map(({ value }) => Number(textOf(value))))
    if (nextOffset === offset) break
    offset = nextOffset
  }
  const left: number[] = []
  for (const shape of shapes) {
    const read = await after.read(1, shape, ALL, ALL)
    left.push(...read!.sequences)
  }
  expect(new Set(results).size).toBe(results.length)
  expect(settled.completed).toBe(results.length)
  expect(results.length + left.length).toBe(accepted)
  const there = new Set([...results, ...left])
  expect(there.size).toBe(accepted)
  expect([...seen.appended].filter((one) => !there.has(one))).toEqual([])
  const settledThere = new Set(results)
  expect([...seen.settled].filter((one) => !settledThere.has(one))).toEqual([])
})

test('a process that exits while it writes ends, with its exit code, whatever transaction is under way', async () => {
  const random = new Random(Number(process.env.SEED ?? 1))
  for (let round = 0; round < ROUNDS; round++) {
    const env = { ...process.env, EXIT_AFTER_MS: `${random.below(500)}` }
    const child = spawn(process.execPath, [CHILD, folder(), '4096'], { env, stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    expect(await once(child, 'exit')).toEqual([7, null])
  }
})
