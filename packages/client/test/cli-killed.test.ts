// `fabric run` under kill -9, started again with the same arguments until it ends: the output holds each
// item once, in whole lines. Also what keeps two runs apart.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { RunningBroker } from '@fabric/broker'
import { describe, expect, it, vi } from 'vitest'
import { type Ended, fabric, outputOf, type Running, start } from './support/command.js'
import { gated, items, resultOf, setUp, written } from './support/run.js'
import { SEED, seeded } from './support/seeded.js'

const COUNT = 1200
const KILLS = Number(process.env.FABRIC_KILLS ?? 5)

/** Kills the run at a moment that the seed picks; the run may end before. */
async function killAtRandom(
  running: Running,
  { output, broker }: { output: string; broker: RunningBroker },
  random: (below: number) => number,
): Promise<Ended> {
  const { child, ended } = running
  const kept = [`${output}.partial`, output].find((path) => existsSync(path))
  const keptLines = kept === undefined ? 0 : readFileSync(kept, 'utf8').split('\n').length
  const accepted = broker.state().items.accepted + 1 + random(COUNT)
  const lines = keptLines + random(COUNT / 4)
  const moments: (() => boolean)[] = [
    () => broker.state().items.accepted >= Math.min(accepted, COUNT),
    () => existsSync(`${output}.resume`),
    () => kept !== undefined && readFileSync(kept, 'utf8').split('\n').length > lines,
    () => existsSync(`${output}.sorted`),
  ]
  const moment = moments[random(moments.length)]
  let isOver = false
  void ended.then(() => {
    isOver = true
  })
  await vi.waitFor(
    () => {
      if (!isOver && !moment()) throw new Error('not yet')
    },
    { timeout: 60_000, interval: 2 },
  )
  child.kill('SIGKILL')
  return ended
}

describe.each(['input', 'completion'])('fabric run killed at random moments, order %s', (order) => {
  it(`goes on with the same arguments: each item once, whole lines (seed ${SEED})`, {
    timeout: 120_000 + KILLS * 20_000,
  }, async () => {
    const set = await setUp()
    const lines = items(COUNT)
    // A line that is no item, a line that comes twice, an id that comes again with another body; in
    // one request with the first of their ids, so that it is the first that stands.
    const odd = ['{', lines[3], { id: 'i5', tokens: [9] }]
    const input = set.write([...lines.slice(0, 10), ...odd, ...lines.slice(10)])
    const args = set.run(input, '--order', order, '--quiet')
    const random = seeded(SEED)
    let ended: Ended = { code: null, stdout: '', stderr: '' }
    for (let kill = 0; kill < KILLS && ended.code === null; kill++) {
      ended = await killAtRandom(start(args), set, random)
    }
    if (ended.code === null) ended = await fabric(args)
    expect(ended.code, ended.stderr).toBe(3)

    const records = outputOf(set.output)
    const completed = records.filter(({ status }) => status === 'completed')
    const failed = records.filter(({ status }) => status !== 'completed')
    const byPlace = (a: { id: string }, b: { id: string }) =>
      Number(a.id.slice(1)) - Number(b.id.slice(1))
    const inOrder = order === 'input' ? completed : completed.toSorted(byPlace)
    expect(inOrder).toEqual(lines.map(resultOf))
    expect(failed.map(({ error }) => error?.line).sort()).toEqual([11, 13])
    expect(readdirSync(set.folder).sort()).toEqual(['in.jsonl', 'out.jsonl'])
    expect(set.broker.state().items.accepted).toBe(COUNT)
  })
})

describe('a run that was broken off', () => {
  async function brokenOff() {
    const gate = gated(8)
    const set = await setUp({ handler: gate.handler })
    const input = set.write(items(40))
    const args = set.run(input)
    const running = start(args)
    await Promise.all([gate.isStuck, written(`${set.output}.partial`)])
    running.child.kill('SIGKILL')
    await running.ended
    return { ...set, input, args, release: gate.release }
  }

  it('is not gone on with under other arguments or with another input, which are named', async () => {
    const { args, input, output, release } = await brokenOff()
    release()
    const before = readFileSync(`${output}.partial`, 'utf8')
    const other = await fabric([...args, '--order', 'completion', '--weight', '2'])
    expect(other.code).toBe(1)
    expect(other.stderr).toMatch(
      /another run: --order was input and is completion, --weight was not given and is 2; .*--restart to begin anew \(FABRIC_OTHER_RUN\)$/m,
    )
    writeFileSync(input, readFileSync(input, 'utf8').replace('i7', 'x7'))
    const changed = await fabric(args)
    expect(changed.stderr).toMatch(/the SHA-256 of its first 64 KiB was \w+ and is/)
    const results = await fabric(
      ['results', 'j', ...args.slice(2)].filter((a) => a !== '--model' && a !== '1'),
    )
    expect(results.stderr).toMatch(/the command was fabric run and is fabric results/)
    expect(readFileSync(`${output}.partial`, 'utf8')).toBe(before)

    const restarted = await fabric([...args, '--restart', '--summary', 'json'])
    expect(restarted).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(restarted.stdout)).toMatchObject({ completed: 40, duplicates: 0 })
    expect(outputOf(output)[7].id).toBe('x7')
  })

  it('submits nothing again that has a record, and gives up the torn end of its file', async () => {
    const { args, output, release } = await brokenOff()
    const kept = outputOf(`${output}.partial`).length
    writeFileSync(`${output}.partial`, '{"id":"i39","stat', { flag: 'a' })
    release()
    const ended = await fabric([...args, '--summary', 'json'])
    expect(JSON.parse(ended.stdout)).toMatchObject({ completed: 40, duplicates: 40 - kept })
    expect(outputOf(output)).toEqual(items(40).map(resultOf))
  })

  it('is begun anew in full when its records were deleted and the broker has the results', async () => {
    const { args, output, release } = await brokenOff()
    rmSync(`${output}.partial`)
    release()
    expect((await fabric(args)).code).toBe(0)
    expect(outputOf(output)).toEqual(items(40).map(resultOf))
  })

  it('says so when the file beside the output is not one of its own', async () => {
    const { args, output, release } = await brokenOff()
    release()
    writeFileSync(`${output}.resume`, 'notes')
    const ended = await fabric(args)
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/out\.jsonl\.resume does not say which run .*FABRIC_OTHER_RUN/)
  })
})

describe('two commands with one output', () => {
  it('the second is refused, by any path, and the first goes on', async () => {
    const gate = gated(8)
    const { output, folder, run, write } = await setUp({ handler: gate.handler })
    const args = run(write(items(40)))
    const first = start(args)
    await Promise.all([gate.isStuck, written(`${output}.partial`)])
    const second = await fabric([
      ...args,
      '-o',
      `${folder}/../${folder.split('/').at(-1)}/out.jsonl`,
    ])
    expect(second.code).toBe(1)
    expect(second.stderr).toMatch(/another fabric command writes to .*FABRIC_OUTPUT_IN_USE/)
    gate.release()
    expect((await first.ended).code).toBe(0)
    expect(outputOf(output)).toEqual(items(40).map(resultOf))
  })
})
