// kill -9 of a broker in disk mode under `fabric run`, and of the run as well: nothing is lost and nothing
// comes twice.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Ended, outputOf, type Running, start } from './support/command.js'
import { closedAddress } from './support/fake-broker.js'
import { startConsumer } from './support/real-broker.js'
import { items, resultOf } from './support/run.js'
import { SEED, seeded } from './support/seeded.js'
import { jsonl, temporaryFolder, writeFile } from './support/texts.js'

const BROKER = fileURLToPath(new URL('../../broker/bin/fabric-broker.js', import.meta.url))
const COUNT = 1000
const KILLS = Number(process.env.FABRIC_KILLS ?? 2)

/** A broker process that can be killed and started again: same socket, same address, same data. */
async function durableBroker() {
  const folder = temporaryFolder()
  const address = await closedAddress()
  const socketPath = join(folder, 'broker.sock')
  const args = ['serve', '--socket', socketPath, '--http', new URL(address).host]
  const flags = ['--data-dir', join(folder, 'data'), '--cleanup-idle-ms', '0']
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
