// `fabric run` that is gone on with, when the broker has given up the results that were read, and when
// it was started anew.
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Handler } from '@fabric/consumer'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fabric, outputOf, start } from './support/command.js'
import { openRealBroker, startConsumer } from './support/real-broker.js'
import { gated, items, resultOf, setUp, written } from './support/run.js'
import { temporaryFolder } from './support/texts.js'

/** Rows large enough to fill segments of the broker's results, which it then gives up. */
const wideRows: Handler = async (batch) =>
  Array.from({ length: batch.size }, (_, i) => new Float32Array(4096).fill(batch.lengths[i]))

const inOrder = (path: string) =>
  outputOf(path)
    .map(({ id, status, result }) => ({ id, status, first: (result as number[] | undefined)?.[0] }))
    .sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)))

const expected = (count: number) =>
  items(count).map(({ id, tokens }) => ({ id, status: 'completed', first: tokens.length }))

async function brokenOff(order: string) {
  const gate = gated(300, wideRows)
  const set = await setUp({ flags: { maxKeptResultBytes: 0 }, handler: gate.handler })
  const input = set.write(items(400))
  const flags = ['--order', order, '--job', 'nightly', '--summary', 'json']
  const first = start(set.run(input, ...flags))
  const kept = order === 'input' ? `${set.output}.partial` : set.output
  await Promise.all([gate.isStuck, written(kept)])
  first.child.kill('SIGINT')
  expect((await first.ended).code).toBe(130)
  const results = `${set.broker.httpUrl}/v1/jobs/nightly/results`
  await (await fetch(`${results}?limit=0&offset=${outputOf(kept).length}`)).text() // they have arrived
  const begin = await fetch(results)
  expect(begin.status).toBe(410) // what was read is nowhere but in the kept file
  return { ...set, input, flags, kept, release: gate.release }
}

describe.each(['input', 'completion'])('a run that is gone on with, order %s', (order) => {
  it('keeps the records that the broker has no more, and goes on behind them', async () => {
    const { folder, output, run, input, flags, kept, release } = await brokenOff(order)
    const count = outputOf(kept).length
    expect(count).toBeGreaterThan(0)
    appendFileSync(kept, '{"id":"torn","sta')
    release()
    const second = await fabric(run(input, ...flags))
    expect(second).toMatchObject({ code: 0, stderr: '' })
    expect(inOrder(output)).toEqual(expected(400))
    expect(JSON.parse(second.stdout)).toMatchObject({ items: 400, completed: 400 })
    expect(readdirSync(folder).sort()).toEqual(['in.jsonl', 'out.jsonl'])
  })

  it('may be broken off again, and has the records of bad lines once', async () => {
    const gate = gated(8)
    const { output, run, write } = await setUp({ handler: gate.handler })
    const input = write(['{', ...items(40)])
    const flags = ['--order', order, '--job', 'nightly']
    for (let i = 0; i < 2; i++) {
      const running = start(run(input, ...flags))
      running.child.stderr?.once('data', () => running.child.kill('SIGINT'))
      await running.ended
    }
    gate.release()
    expect((await fabric(run(input, ...flags))).code).toBe(3)
    const ids = outputOf(output).map(({ id }) => id)
    expect(ids.sort()).toEqual(['1', ...items(40).map(({ id }) => id)].sort())
  })

  it('refuses to begin anew over the only copy of results', async () => {
    const { output, run, input, flags, kept, release } = await brokenOff(order)
    release()
    const before = readFileSync(kept, 'utf8')
    rmSync(`${output}.resume`)
    const second = await fabric(run(input, ...flags))
    expect(second.code).toBe(1)
    expect(second.stderr).toContain(
      `what was written of them is in ${kept}, which is left as it is`,
    )
    expect(second.stderr).toContain('FABRIC_RESULTS_GONE')
    expect(readFileSync(kept, 'utf8') === before).toBe(true)
  })
})

describe('a broker that has not what is asked of it any more', () => {
  it('fabric results leaves an older file as it is when the results are gone', async () => {
    const { broker, folder, release } = await brokenOff('input')
    release()
    const output = join(folder, 'old.jsonl')
    writeFileSync(output, 'old\n')
    const args = ['results', 'nightly', '-o', output, '--broker', broker.httpUrl]
    const ended = await fabric(args)
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('FABRIC_RESULTS_GONE')
    expect(readFileSync(output, 'utf8')).toBe('old\n')
  })

  it('a run says that the broker was started anew, and given again submits what has no result', async () => {
    const gate = gated(8)
    const { broker, output, run, write } = await setUp({ handler: gate.handler })
    const args = run(write(items(400)))
    const first = start(args)
    await Promise.all([gate.isStuck, written(`${output}.partial`)])
    const stopped = broker.stop() // its consumer ends with the batch that it holds
    gate.release()
    await stopped
    const http = new URL(broker.httpUrl).host
    const second = await openRealBroker(temporaryFolder(), { http })
    onTestFinished(() => second.stop())
    const { code, stderr } = await first.ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/stopped: the broker was started anew at .*its memory is lost/)
    expect(stderr).toMatch(
      /kept in .*out\.jsonl\.partial; .*the same command, which submits the items without a result anew/,
    )
    const kept = outputOf(`${output}.partial`).length
    await startConsumer(second)
    const again = await fabric([...args, '--summary', 'json'])
    expect(again.code).toBe(0)
    expect(again.stderr).toMatch(/^fabric: .* items without one are submitted anew$/m)
    expect(outputOf(output)).toEqual(items(400).map(resultOf))
    expect(JSON.parse(again.stdout)).toMatchObject({ completed: 400, duplicates: 0 })
    expect(second.state().items.accepted).toBe(400 - kept)
  })
})
