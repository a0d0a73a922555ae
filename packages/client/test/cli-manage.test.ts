// `fabric jobs`, `fabric quarantine` and `fabric explain` in child processes, against a real broker,
// and a consumer process that one item kills.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { FabricClient } from '../src/index.js'
import { fabric } from './support/command.js'
import { startConsumer, startRealBroker } from './support/real-broker.js'
import { jsonl, temporaryFolder, writeFile } from './support/texts.js'

const CONSUMER = fileURLToPath(new URL('../../consumer/bin/fabric-consumer.js', import.meta.url))
const POISON = 666

async function setUp(flags = {}) {
  const broker = await startRealBroker(flags)
  const folder = temporaryFolder()
  const run = (...args: string[]) => fabric(args, { env: { FABRIC_BROKER: broker.httpUrl } })
  const submit = (records: unknown[], ...args: string[]) =>
    run('submit', writeFile(folder, 'in.jsonl', jsonl(records)), '--model', '1', ...args)
  return { broker, folder, run, submit }
}

/** A consumer process that ends at once when it gets the poison, and is started again when it ended. */
function startMortalConsumer(socketPath: string, folder: string): void {
  const runtime = writeFile(
    folder,
    'mortal.mjs',
    `export function createRuntime() {
      return {
        description: 'dies of one token',
        async run(batch) {
          if (batch.inputIds.includes(${POISON})) process.exit(9)
          return Array.from(batch.lengths, (length) => ({ tokens: length }))
        },
        async close() {},
      }
    }`,
  )
  const contract = ['--batch-size', '4', '--tokens', '64', '--input-length', '16', '--model', '1']
  const args = [CONSUMER, '--broker', `unix:${socketPath}`, '--runtime', runtime, ...contract]
  let finished = false
  let child = spawn(process.execPath, args, { stdio: 'ignore' })
  const again = () => {
    if (finished) return
    child = spawn(process.execPath, args, { stdio: 'ignore' })
    child.on('exit', again)
  }
  child.on('exit', again)
  onTestFinished(() => {
    finished = true
    child.kill('SIGKILL')
  })
}

describe('fabric jobs', () => {
  it('pauses a job, whose items then wait, resumes it, and cancels what has not ended', async () => {
    const { broker, run, submit } = await setUp()
    await submit([{ id: 'a', tokens: [1] }], '--job', 'nightly')
    expect((await run('jobs', 'pause', 'nightly')).stdout).toBe('job nightly: pause done\n')
    await startConsumer(broker)
    expect((await run('jobs', 'list')).stdout).toMatch(/^nightly +flushed, paused +1 +0 +0 +1$/m)
    expect((await run('explain', 'a', '--job', 'nightly')).stdout).toMatch(/paused/)

    await run('jobs', 'resume', 'nightly')
    const completed = async () =>
      expect((await run('jobs', 'list')).stdout).toMatch(/^nightly +ended +0 +0 +1 +1$/m)
    await vi.waitFor(completed, { timeout: 30_000 })

    await submit([{ id: 'b', tokens: [1] }], '--job', 'unserved', '--model', '7')
    expect((await run('jobs', 'cancel', 'unserved')).code).toBe(0)
    expect((await run('jobs', 'list')).stdout).toMatch(/^unserved +cancelled +0 +0 +0 +1$/m)
  })

  it('a job that is not there is named, with exit code 1', async () => {
    const { run } = await setUp()
    const ended = await run('jobs', 'pause', 'none')
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/none.*\(FABRIC_NOT_FOUND\)/)
  })
})

describe('fabric explain', () => {
  it('says that nobody serves the model of an item', async () => {
    const { run, submit } = await setUp()
    await submit([{ id: 'a', tokens: [1] }], '--job', 'j', '--model', '3')
    const { code, stdout } = await run('explain', 'a', '--job', 'j')
    expect(code).toBe(0)
    expect(stdout).toMatch(/no consumer.*model 3/)
  })

  it('says when an item is held back no longer, or by how many batches it was passed over', async () => {
    const { broker, run } = await setUp({ cleanupIdleMs: 600_000, releaseThreshold: 1 })
    await startConsumer(broker)
    const client = new FabricClient({ broker: broker.httpUrl })
    const submit = async (id: string, maxWaitMs: number) => {
      const job = await client.createJob({ id, model: 1, maxWaitMs })
      // Its input goes on: no tail.
      await job.submit([{ id: `of ${id}`, tokens: [1] }], { more: true })
    }
    await submit('bounded', 600_000)
    await submit('endless', 0)
    const bounded = (await run('explain', 'of bounded', '--job', 'bounded')).stdout
    expect(bounded).toMatch(/2 of 8 for its shape \(8 tokens\), ages in \d+\.\d s/)
    const endless = (await run('explain', 'of endless', '--job', 'endless')).stdout
    expect(endless).toMatch(/passed over by 0 of 10000 batches/)
    const { models } = broker.state()
    expect(models[0].ageing).toMatchObject({ dueShapes: 0, passedOverShapes: 0 })
    expect(models[0].ageing.nextDueInNs).toBeGreaterThan(0)
  })

  it('an item that is not there is named, with exit code 1', async () => {
    const { run } = await setUp()
    const ended = await run('explain', 'nobody')
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('nobody')
  })
})

describe('fabric quarantine', () => {
  it('lists the item that killed its consumers, replays and deletes it', async () => {
    const { broker, folder, run, submit } = await setUp()
    startMortalConsumer(broker.socketPath, folder)
    const records = [1, 2, 3, POISON].map((token) => ({ id: `t${token}`, tokens: [token] }))
    await submit(records, '--job', 'j')
    const listed = async () =>
      expect((await run('quarantine', 'list')).stdout).toMatch(/^j +t666 .*connection_closed$/m)
    await vi.waitFor(listed, { timeout: 60_000 })
    const survivors = async () =>
      expect((await run('jobs', 'list')).stdout).toMatch(/^j +ended +0 +0 +3 +4$/m)
    await vi.waitFor(survivors, { timeout: 30_000 })

    expect((await run('quarantine', 'replay')).stderr).toContain('--all')
    expect((await run('quarantine', 'replay', 't666')).stdout).toBe('1 submitted anew\n')
    await vi.waitFor(listed, { timeout: 60_000 })
    expect((await run('quarantine', 'delete', '--all')).stdout).toBe('1 deleted\n')
    expect((await run('quarantine', 'list')).stdout).toBe('nothing is in quarantine\n')
  })
})
