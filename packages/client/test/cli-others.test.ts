// `fabric submit`, `results` and `status` in child processes, against a real broker.
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { fabric, outputOf } from './support/command.js'
import { startConsumer, startRealBroker } from './support/real-broker.js'
import { jsonl, temporaryFolder, writeFile } from './support/texts.js'

async function setUp(flags = {}) {
  const broker = await startRealBroker(flags)
  const folder = temporaryFolder()
  const env = { FABRIC_BROKER: broker.httpUrl }
  const run = (...args: string[]) => fabric(args, { env })
  const write = (records: unknown[]) => writeFile(folder, 'in.jsonl', jsonl(records))
  return { broker, run, write, output: join(folder, 'out.jsonl') }
}

describe('fabric submit and fabric results', () => {
  it('hand a job from one process to another', async () => {
    const { broker, run, write, output } = await setUp()
    const submitted = await run(
      'submit',
      write([{ tokens: [1, 2] }, { tokens: [3] }]),
      '--model',
      '1',
    )
    expect(submitted.code).toBe(0)
    expect(submitted.stdout).toMatch(/^[0-9a-f-]{36}\n$/)
    expect(submitted.stderr).toContain('2 items accepted, 0 known before, 0 failed')

    await startConsumer(broker)
    const results = await run('results', submitted.stdout.trim(), '-o', output)
    expect(results).toMatchObject({ code: 0, stdout: '' })
    expect(results.stderr).toContain('2 completed, 0 failed')
    const byId = outputOf(output).sort((a, b) => Number(a.id) - Number(b.id))
    expect(byId.map(({ result }) => result)).toEqual([
      [2, 3],
      [1, 3],
    ])
  })

  it('submit reports bad lines and what is refused, and goes on', async () => {
    const { run, write } = await setUp()
    const ended = await run('submit', write(['{', { tokens: [] }, { tokens: [1] }]), '--model', '1')
    expect(ended.code).toBe(3)
    expect(ended.stderr).toMatch(/^fabric: line 1: not JSON.*\(FABRIC_INPUT\)$/m)
    expect(ended.stderr).toMatch(/^fabric: line 2: tokens: .*\(FABRIC_ITEM_MALFORMED\)$/m)
    expect(ended.stderr).toContain('1 items accepted')
  })

  it('results of a job that does not exist leave no file', async () => {
    const { run, output } = await setUp()
    const ended = await run('results', 'none', '-o', output)
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('FABRIC_NOT_FOUND')
    expect(existsSync(output)).toBe(false)
  })

  it('results without follow end with what is there', async () => {
    const { run, write, output } = await setUp()
    const job = (await run('submit', write([{ tokens: [1] }]), '--model', '1')).stdout.trim()
    const ended = await run('results', job, '-o', output, '--no-follow')
    expect(ended.code).toBe(0)
    expect(outputOf(output)).toEqual([])
  })
})

describe('fabric status', () => {
  it('shows the gate, the consumers, the jobs, and a model that nobody serves', async () => {
    const { broker, run, write } = await setUp()
    expect((await run('status')).stdout).toContain('no consumer is registered\n\nno job has items')
    await startConsumer(broker)
    await run('submit', write([{ tokens: [1] }]), '--model', '2', '--job', 'nightly')
    const { code, stdout } = await run('status')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^gate +closed/m)
    expect(stdout).toMatch(/^no consumer +for model 2: 1 items wait$/m)
    expect(stdout).toMatch(/^nightly +2 +flushed +1 +1 +0 +0 +0$/m)
  })

  it('says which job is on hold until its results are read', async () => {
    const { broker, run, write } = await setUp({ maxUnreadResultBytes: 4096 })
    await startConsumer(broker)
    const input = write(Array.from({ length: 900 }, () => ({ tokens: [1] })))
    await run('submit', input, '--model', '1', '--job', 'unread', '--retry-for', '0')
    const shown = async () =>
      expect((await run('status')).stdout).toMatch(/^stalled +job unread, .*results are unread/m)
    await vi.waitFor(shown, { timeout: 20_000 })
  })

  it('says where it looked when no broker is there', async () => {
    const ended = await fabric(['status', '--broker', 'http://127.0.0.1:9'])
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/^fabric: no broker answers at http:\/\/127\.0\.0\.1:9 \(/)
  })

  const foreign: [what: string, status: number, body: string][] = [
    ['a page', 200, '<!doctype html><p>Welcome'],
    ['a page that says no', 404, '<!doctype html><p>Nothing here'],
    ['JSON of its own', 200, '{"hello":"world"}'],
  ]
  it.each(foreign)('says that what answers is not a broker: %s', async (_, status, body) => {
    const server = createServer((_request, response) => response.writeHead(status).end(body))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const ended = await fabric(['status', '--broker', address])
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toContain(`fabric: what answers at ${address} is not a broker (`)
    expect(ended.stderr).not.toContain('<')
    expect(ended.stderr.trim().split('\n')).toHaveLength(1)
  })

  it('names FABRIC_BROKER when it holds the socket that consumers use', async () => {
    const ended = await fabric(['status'], { env: { FABRIC_BROKER: 'unix:broker.sock' } })
    expect(ended.code).toBe(2)
    expect(ended.stderr).toMatch(/HTTP address.*got the socket unix:broker\.sock.*FABRIC_BROKER/)
  })
})
