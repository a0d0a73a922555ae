// kill -9 of a broker in disk mode under `fabric run`, and of the run as well: nothing is lost and nothing
// comes twice.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Ended, fabric, outputOf, type Running, start } from './support/command.js'
import { closedAddress } from './support/fake-broker.js'
import { startConsumer } from './support/real-broker.js'
import { items, resultOf } from './support/run.js'
import { SEED, seeded } from './support/seeded.js'
import { jsonl, temporaryFolder, writeFile } from './support/texts.js'

const BROKER = fileURLToPath(new URL('../../broker/bin/fabric-broker.js', import.meta.url))
const COUNT = 1000
const KILLS = Number(process.env.FABRIC_KILLS ?? 2)

/** A broker process that can be killed and started again: same socket, same address, same data. */
async function durableBroker(more: readonly string[] = []) {
  const folder = temporaryFolder()
  const address = await closedAddress()
  const socketPath = join(folder, 'broker.sock')
  const args = ['serve', '--socket', socketPath, '--http', new URL(address).host]
  const flags = ['--data-dir', join(folder, 'data'), '--cleanup-idle-ms', '0', ...more]
  let child: ChildProcess
  const up = async () => {
    child = spawn(process.execPath, [BROKER, ...args, ...flags], { stdio: 'ignore' })
    await vi.waitFor(() => fetch(`${address}/livez`), { timeout: 30_000, interval: 20 })
  }
  const down = async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(down)
  await up()
  return { address, socketPath, up, down }
}

const linesOf = (path: string) =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0

describe.each(['input', 'completion'])(
  'a broker in disk mode under fabric run, order %s',
  (order) => {
    it(`may be killed with the run or without: each item once (seed ${SEED})`, {
      timeout: 120_000 + KILLS * 20_000,
    }, async () => {
      const broker = await durableBroker()
      await startConsumer(broker)
      const folder = temporaryFolder()
      const output = join(folder, 'out.jsonl')
      const input = writeFile(folder, 'in.jsonl', jsonl(items(COUNT)))
      const kept = order === 'input' ? `${output}.partial` : output
      const args = ['run', input, '-o', output, '--model', '1', '--broker', broker.address]
      const flags = ['--order', order, '--quiet']
      const random = seeded(SEED)

      let running: Running
      let ended: Ended | null
      const begin = () => {
        ended = null
        running = start([...args, ...flags])
        void running.ended.then((how) => {
          ended = how
        })
      }
      begin()
      for (let kill = 0; kill < KILLS && ended! === null; kill++) {
        const lines = linesOf(kept) + random(COUNT / KILLS)
        await vi.waitFor(
          () => {
            if (ended === null && linesOf(kept) < lines) throw new Error('not yet')
          },
          { timeout: 60_000, interval: 5 },
        )
        const both = random(2) === 1
        if (both) running!.child.kill('SIGKILL')
        await broker.down()
        if (both && (await running!.ended).code === null) begin() // it waits for the broker
        await broker.up()
      }
      const { code, stderr } = await running!.ended
      expect(code, stderr).toBe(0)
      const records = outputOf(output).map(({ attempts: _, ...record }) => record)
      const byPlace = (a: { id: string }, b: { id: string }) =>
        Number(a.id.slice(1)) - Number(b.id.slice(1))
      const inOrder = order === 'input' ? records : records.toSorted(byPlace)
      expect(inOrder).toEqual(
        items(COUNT)
          .map(resultOf)
          .map(({ attempts: _, ...record }) => record),
      )
    })
  },
)

describe('a broker with relaxed sync', () => {
  it('is killed: fabric run tells what has no result, and the same command submits it anew', {
    timeout: 120_000,
  }, async () => {
    // Only the first write comes at once, and the queue is full before all is submitted.
    const sync = ['--sync', 'relaxed', '--sync-interval-ms', '60000']
    const broker = await durableBroker([...sync, '--max-queued-items', '2500'])
    const folder = temporaryFolder()
    const output = join(folder, 'out.jsonl')
    const input = writeFile(folder, 'in.jsonl', jsonl(items(4000)))
    const args = ['run', input, '-o', output, '--model', '1', '--broker', broker.address, '--quiet']
    const first = start(args)
    const accepted = async () => {
      const answer = await fetch(`${broker.address}/v1/jobs`)
      const { jobs } = (await answer.json()) as { jobs: { accepted: number }[] }
      return Math.max(...jobs.map((job) => job.accepted))
    }
    await vi.waitFor(async () => expect(await accepted()).toBeGreaterThan(1500), {
      timeout: 30_000,
      interval: 20,
    })
    await broker.down()
    await broker.up()
    await startConsumer(broker)
    const { code, stderr } = await first.ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/items have no result: the broker has lost them \(FABRIC_RESULTS_GONE\)/)
    expect(stderr).toContain('to go on: the same command')
    expect((await fabric(args)).code).toBe(0)
    expect(outputOf(output).map(({ id }) => id)).toEqual(items(4000).map(({ id }) => id))
  })
})
