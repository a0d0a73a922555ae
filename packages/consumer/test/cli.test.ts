// The command fabric-consumer as a process, on a tiny random model.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeTinyModelDir } from '@fabric/encoder-onnx'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { prettyLine } from '../src/cli/log.js'
import { fabricConsumer } from './support/process.js'
import { floats, json, StubBroker, type StubOptions } from './support/stub-broker.js'

const root = mkdtempSync(join(tmpdir(), 'fabric-consumer-'))
const modelDir = join(root, 'model')
const runtimeModule = fileURLToPath(new URL('fixtures/length-runtime.mjs', import.meta.url))
beforeAll(() => void writeTinyModelDir(modelDir, 1))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const NUMBERS = ['--batch-size', '8', '--tokens', '1024', '--input-length', '64', '--model', '1']
const ITEMS = [{ tokens: [101, 5, 6, 102] }, { tokens: [101, 102] }]

async function broker(options: StubOptions = {}): Promise<StubBroker> {
  const started = await StubBroker.start(options)
  onTestFinished(() => started.dispose())
  return started
}

describe('fabric-consumer', () => {
  test('embeds batches by the ring, logs how it registered, and drains on SIGTERM with exit 0', async () => {
    const stub = await broker({ transport: 'ring' })
    const consumer = fabricConsumer([
      ...['--broker', stub.address, '--model-dir', modelDir, '--device', 'cpu', ...NUMBERS],
      ...['--name', 'gpu0', '--log-level', 'debug'],
    ])
    const connection = await stub.registered()
    expect(connection.hello).toMatchObject({
      name: 'gpu0',
      contract: { batchSize: 8, tokens: 1024, inputLength: 64, model: 1, layout: 'padded' },
    })
    connection.send({ batch: 1, items: ITEMS })
    const outcomes = await connection.outcomes(1, 2)
    expect(floats(outcomes.get(0)!)).toHaveLength(64)
    expect(Math.hypot(...floats(outcomes.get(1)!))).toBeCloseTo(1, 5)
    consumer.kill('SIGTERM')
    expect(await consumer.exited()).toBe(0)
    expect(connection.hasSaidBye).toBe(true)
    const lines = consumer.output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const registered = lines.find(({ msg }) => String(msg).startsWith('registered as gpu0'))
    expect(registered).toMatchObject({
      transport: 'ring',
      transportReason: 'same host',
      pageSizeBytes: 4096,
    })
    expect(lines.find(({ msg }) => msg === 'batch done')).toMatchObject({ batch: 1, items: 2 })
    expect(lines.find(({ msg }) => msg === 'drained')).toMatchObject({ batches: 1, items: 2 })
  })

  test('takes every flag from the environment too; a flag wins', async () => {
    const stub = await broker()
    fabricConsumer(['--name', 'flag'], {
      FABRIC_BROKER: stub.address,
      FABRIC_RUNTIME: 'onnx',
      FABRIC_MODEL_DIR: modelDir,
      FABRIC_DEVICE: 'cpu',
      FABRIC_BATCH_SIZE: '4',
      FABRIC_TOKENS: '512',
      FABRIC_INPUT_LENGTH: '32',
      FABRIC_MODEL: '7',
      FABRIC_NAME: 'environment',
      FABRIC_TRANSPORT: 'socket',
      FABRIC_MAX_IN_FLIGHT: '2',
    })
    const { hello } = await stub.registered()
    expect(hello).toMatchObject({
      name: 'flag',
      transport: 'socket',
      contract: { batchSize: 4, tokens: 512, inputLength: 32, model: 7, maxInFlight: 2 },
    })
  })

  test('an over-long input is cut before its [SEP]; under `fail` it fails alone', async () => {
    const long = { tokens: [101, ...Array(80).fill(9), 102] }
    const cut = { tokens: [101, ...Array(62).fill(9), 102] }
    const rows = []
    for (const policy of ['truncate', 'fail']) {
      const stub = await broker()
      const args = ['--broker', stub.address, '--model-dir', modelDir, '--device', 'cpu']
      fabricConsumer([...args, ...NUMBERS, '--overlength', policy])
      const connection = await stub.registered()
      connection.send({ batch: 1, items: [long, cut] })
      rows.push(await connection.outcomes(1, 2))
    }
    const [truncated, failing] = rows
    expect(truncated.get(0)!.truncatedTo).toBe(64)
    const whole = floats(truncated.get(1)!)
    floats(truncated.get(0)!).forEach((x, d) => {
      expect(x).toBeCloseTo(whole[d], 5)
    })
    expect(json(failing.get(0)!)).toMatchObject({ code: 'FABRIC_INPUT_TOO_LONG' })
    expect(floats(failing.get(1)!)).toHaveLength(64)
  })

  test('a runtime module is run: the example in README.md', async () => {
    const example = readFileSync(runtimeModule, 'utf8').split('\n').slice(1).join('\n').trim()
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
    expect(readme).toContain(example)
    const stub = await broker()
    const consumer = fabricConsumer([
      ...['--broker', stub.address, '--runtime', runtimeModule, ...NUMBERS],
    ])
    const connection = await stub.registered()
    connection.send({ batch: 1, items: ITEMS })
    const outcomes = await connection.outcomes(1, 2)
    expect([0, 1].map((i) => json(outcomes.get(i)!))).toEqual([{ tokens: 4 }, { tokens: 2 }])
    expect(consumer.output).toContain('counting tokens')
  })

  test('no broker: one line with the path, then it is found when it comes', async () => {
    const stub = new StubBroker()
    onTestFinished(() => stub.dispose())
    const consumer = fabricConsumer([
      ...['--broker', stub.address, '--runtime', runtimeModule, ...NUMBERS],
      ...['--log-format', 'pretty'],
    ])
    await consumer.said(`no broker answers at unix:${stub.path}`)
    await stub.listen()
    await stub.registered()
    await consumer.said('registered as')
  })

  test.each([[['--no-reconnect']], [['--connect-timeout', '200']]])(
    'no broker and %s: one line and exit code 1',
    async (flags) => {
      const consumer = fabricConsumer([
        ...['--broker', 'unix:/nowhere/at.all', '--runtime', runtimeModule, ...NUMBERS],
        ...[...flags, '--log-level', 'silent'],
      ])
      expect(await consumer.exited()).toBe(1)
      expect(consumer.output.trim().split('\n')).toEqual([
        expect.stringContaining(
          'FABRIC_BROKER_UNREACHABLE: no broker answers at unix:/nowhere/at.all',
        ),
      ])
    },
  )

  test('a second signal ends at once', async () => {
    const stub = await broker()
    const consumer = fabricConsumer([
      ...['--broker', stub.address, '--runtime', stuckRuntime(), ...NUMBERS],
    ])
    const connection = await stub.registered()
    connection.send({ batch: 1, items: ITEMS })
    await connection.until(() => connection.taken.length === 1)
    consumer.kill('SIGTERM')
    await connection.until(() => connection.hasDrained)
    consumer.kill('SIGINT')
    expect(await consumer.exited()).toBe(130)
  })

  const stuckRuntime = () => fileURLToPath(new URL('fixtures/stuck-runtime.mjs', import.meta.url))
})

describe('fabric-consumer refuses, in one line,', () => {
  const run = async (args: readonly string[], env: Record<string, string> = {}) => {
    const consumer = fabricConsumer(args, env)
    const exitCode = await consumer.exited()
    const lines = consumer.output.trim().split('\n')
    expect(lines).toHaveLength(1)
    return { exitCode, line: lines[0] }
  }

  test.each(
    ['--batch-size', '--tokens', '--input-length', '--model', '--threads', '--connect-timeout'].map(
      (flag, i) => [flag, ['64k', '-1', '1.5', '1e20', '', '0x10'][i]] as const,
    ),
  )('%s %s, with exit code 2', async (flag, value) => {
    const { exitCode, line } = await run([...NUMBERS, `${flag}=${value}`])
    expect(exitCode).toBe(2)
    expect(line).toContain(flag)
  })

  test.each([
    ['a number that is missing', NUMBERS.slice(2), '--batch-size'],
    ['0 items', [...NUMBERS, '--batch-size', '0'], '--batch-size'],
    ['a device it does not know', [...NUMBERS, '--device', 'tpu'], '--device'],
    ['a flag it does not know', [...NUMBERS, '--frobnicate', '4'], '--frobnicate'],
    ['a rounding that is no power of two', [...NUMBERS, '--round-to', '12'], 'roundTo'],
    ['an address of another kind', [...NUMBERS, '--broker', 'tls://host:7411'], 'Unix socket'],
    ['an address of the HTTP interface', [...NUMBERS, '--broker', 'http://host:7410'], 'producers'],
  ])('%s, with exit code 2', async (_what, args, named) => {
    const { exitCode, line } = await run(args)
    expect(exitCode).toBe(2)
    expect(line).toContain(named)
  })

  test('a wrong number in the environment, with exit code 2', async () => {
    const { exitCode, line } = await run(NUMBERS, { FABRIC_THREADS: 'many' })
    expect(exitCode).toBe(2)
    expect(line).toContain('FABRIC_THREADS')
  })

  test.each([
    ['a model folder that is not there', ['--model-dir', '/nowhere'], 'FABRIC_MODEL_DIR'],
    ['a folder without a model', ['--model-dir', root], 'holds no model.onnx'],
    [
      'cuda where there is none',
      ['--model-dir', modelDir, '--device', 'cuda'],
      'FABRIC_DEVICE_UNAVAILABLE',
    ],
    ['a runtime it does not know', ['--runtime', 'abacus'], 'FABRIC_RUNTIME_MISSING'],
    ['a module that is not there', ['--runtime', './none.mjs'], 'none.mjs cannot be loaded'],
    [
      'a module without createRuntime',
      ['--runtime', '../../protocol/dist/limits.js'],
      'exports no function',
    ],
  ])('%s, with exit code 1', async (_what, args, named) => {
    const here = fileURLToPath(new URL('../../protocol/dist/limits.js', import.meta.url))
    const { exitCode, line } = await run([
      ...NUMBERS,
      ...args.map((arg) => (arg.endsWith('limits.js') ? here : arg)),
    ])
    expect(exitCode).toBe(1)
    expect(line).toContain(named)
  })
})

test('a log line for people has time, level, words and details', () => {
  const json =
    '{"level":30,"time":"2026-01-01T00:00:00.000Z","name":"x","msg":"drained","batches":3}'
  expect(prettyLine(json)).toBe('2026-01-01T00:00:00.000Z info  drained batches=3\n')
})
