// `fabric-broker verify` and `dump` on the folders of stopped brokers.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { segmentPath } from '../../src/storage/segment-file.ts'
import { folder, store } from './support/folder.ts'
import { blockOf, item, job, settled } from './support/items.ts'

const COMMAND = fileURLToPath(new URL('../../bin/fabric-broker.js', import.meta.url))

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, ...args], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr, lines: stdout.trim().split('\n') }
}

/** Two items, the first settled, both with tokens that can be found in the file. */
async function filled(): Promise<string> {
  const dataDir = folder()
  const one = await store(dataDir)
  await one.createJob(job(1))
  const items = [item('a', 2, { seed: 11 }), item('b', 3, { seed: 0x7a7a7a00 })]
  const sequences = Float64Array.of(1, 2)
  await one.append({ job: 1, block: blockOf(1, items), sequences, acceptedAtMs: 5 })
  await one.settle([settled(1, 1, items[0])])
  await one.close()
  return dataDir
}

test('verify says that all is in order, or what is not, and changes nothing', async () => {
  const dataDir = await filled()
  const good = run('verify', '--data-dir', dataDir)
  expect(good).toMatchObject({ status: 0, lines: expect.arrayContaining([`${dataDir}: in order`]) })
  const path = segmentPath(dataDir, 1)
  const file = readFileSync(path)
  file[file.indexOf(Buffer.from([1, 0x7a, 0x7a, 0x7a]))] = 9
  writeFileSync(path, file)
  const bad = run('verify', '--data-dir', dataDir)
  expect(bad.status).toBe(1)
  expect(bad.stdout).toContain('block of job 1, model 1, length 8, from 1: damaged')
  expect(readFileSync(path).equals(file)).toBe(true)
  const json = JSON.parse(run('verify', '--data-dir', dataDir, '--json').stdout)
  expect(json.problems.length).toBe(1)
  const dumped = run('dump', '--data-dir', dataDir, '--items')
  expect(dumped).toMatchObject({ status: 0, stdout: '' })
  expect(dumped.stderr).toContain('left out: a block of job job-1')
})

test('dump prints jobs, unsettled items and results, of all jobs or of one', async () => {
  const dataDir = await filled()
  const of = (...args: string[]) => run('dump', '--data-dir', dataDir, ...args)
  expect(JSON.parse(of().stdout)).toMatchObject({
    id: 'job-1',
    counts: { accepted: 2, completed: 1 },
  })
  expect(JSON.parse(of('--items').stdout)).toEqual({
    job: 'job-1',
    sequence: 2,
    id: 'b',
    model: 1,
    tokens: [0x7a7a7a00, 0x7a7a7a01, 0x7a7a7a02],
    acceptedAtMs: 5,
  })
  expect(JSON.parse(of('--results', '--job', 'job-1').stdout)).toMatchObject({
    job: 'job-1',
    offset: 0,
    id: 'a',
    status: 'completed',
  })
  expect(of('--job', 'none')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('FABRIC_NOT_FOUND'),
  })
  expect(of('--items', '--results').status).toBe(2)
  expect(run('verify', '--data-dir', `${dataDir}/none`).stderr).toContain('FABRIC_NOT_FOUND')
})

test('verify and dump beside a broker that has the folder open do not disturb it', async () => {
  const dataDir = folder()
  const one = await store(dataDir)
  await one.createJob(job(1))
  for (let round = 1; round <= 3; round++) {
    const items = [item(`i${round}`, 3)]
    await one.append({
      job: 1,
      block: blockOf(1, items),
      sequences: Float64Array.of(round),
      acceptedAtMs: 5,
    })
    expect(run('verify', '--data-dir', dataDir).status).toBe(0)
    expect(run('dump', '--data-dir', dataDir, '--items').lines).toHaveLength(round)
    const found = await one.find(round)
    expect(Array.from(found!.sequences)).toEqual([round])
  }
})
