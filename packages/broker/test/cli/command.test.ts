// The command as users call it: exit codes, one-line errors, status, and how it ends on signals.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { items, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { BrokerProcess, run, spawnConsumer } from '../support/processes.ts'
import { until } from '../support/until.ts'

describe('fabric-broker: calls', () => {
  test.each([
    [['--version'], 0, /^\d+\.\d+\.\d+/],
    [['serve', '--help'], 0, /--release-threshold/],
    [['config', 'schema'], 0, /"additionalProperties": false/],
  ])('%j prints and exits %i', async (args, code, output) => {
    const command = run(...args)
    expect((await command.exited).code).toBe(code)
    expect(command.output).toMatch(output)
  })

  test.each([
    [['serve', '--no-such-option'], 2, /unknown option/],
    [['serv'], 2, /unknown command|Did you mean serve/],
    [
      ['serve', '--channel-depth', 'many'],
      1,
      /FABRIC_CONFIG_INVALID: channelDepth: --channel-depth/,
    ],
    [['serve', '--http', '0.0.0.0:0'], 1, /FABRIC_INSECURE: http:.*--insecure/],
    [['status', '--broker', 'http://127.0.0.1:1'], 1, /FABRIC_BROKER_UNREACHABLE/],
  ])('%j exits %i with a clear line', async (args, code, line) => {
    const command = run(...args)
    expect((await command.exited).code).toBe(code)
    expect(command.errorLines.join('\n')).toMatch(line)
    expect(command.errorLines.length).toBeLessThanOrEqual(2)
  })

  test('an unknown key of the file is refused with file and key', async () => {
    const file = join(temporaryFolder(), 'fabric.yaml')
    writeFileSync(file, 'chanelDepth: 3\n')
    const command = run('serve', '--config', file)
    expect((await command.exited).code).toBe(1)
    expect(command.errorLines).toEqual([
      `fabric-broker: FABRIC_CONFIG_INVALID: chanelDepth: unknown key in ${file} (did you mean channelDepth?)`,
    ])
  })

  test('status shows consumers, transport and why, gate and queue', async () => {
    const broker = await testBroker({ releaseThreshold: 48 })
    await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(3))
    const command = run('status', '--broker', broker.httpUrl)
    expect((await command.exited).code).toBe(0)
    expect(command.output).toMatch(/gate +closed, 50.0 % of 48 tokens/)
    expect(command.output).toMatch(/queue +3 items, 24 tokens/)
    expect(command.output).toMatch(/gpu0 +live +0 +8 x 64, 64 tokens +ring, 4 MiB, 4 KiB pages/)
    expect(command.output).toContain('same host')
  })
})

describe('fabric-broker consumers drain', () => {
  test('lets a consumer finish what it has taken; it leaves, and the others go on', async () => {
    const broker = await testBroker()
    const leaving = await FakeConsumer.connect(broker.socketPath, { name: 'leaving' })
    await broker.post('/v1/items', items(8))
    const batch = await leaving.nextBatch()
    leaving.take(batch)
    const command = run('consumers', 'drain', 'leaving', '--broker', broker.httpUrl)
    expect(await command.exited).toMatchObject({ code: 0 })
    expect(command.output).toBe('leaving is draining\n')
    expect(broker.state().consumers).toMatchObject([{ name: 'leaving', state: 'draining' }])
    const staying = await FakeConsumer.connect(broker.socketPath, { name: 'staying' })
    leaving.settle(batch)
    await until(() => leaving.error !== null)
    expect(leaving.error).toMatchObject({ code: 'FABRIC_CONSUMER_DRAINED' })
    await broker.post('/v1/items', items(8, 8, 'b'))
    await staying.work(() => broker.state().items.settled.completed === 16)
  })

  test('a consumer that is not there is named, with exit code 1', async () => {
    const broker = await testBroker()
    const command = run('consumers', 'drain', 'nobody', '--broker', broker.httpUrl)
    expect((await command.exited).code).toBe(1)
    expect(command.errorLines.join('\n')).toMatch(/FABRIC_NOT_FOUND.*nobody/)
  })
})

describe('fabric-broker ring stat', () => {
  test('shows positions, use, gaps, claims, retries, page size and peer of a live ring', async () => {
    const broker = await testBroker()
    const consumer = await FakeConsumer.connect(broker.socketPath)
    await broker.post('/v1/items', items(8))
    consumer.take(await consumer.nextBatch())
    const command = run('ring', 'stat', '--broker', broker.httpUrl)
    expect((await command.exited).code).toBe(0)
    expect(command.output).toMatch(
      new RegExp(`^gpu0 {2}pid ${process.pid}, uid ${process.getuid!()}, ring [0-9a-f]{16}$`, 'm'),
    )
    expect(command.output).toMatch(/memory +4 MiB, 4 KiB pages \(huge pages are off/)
    expect(command.output).toMatch(/used +[1-9]\d* bytes/)
    for (const position of ['claimed', 'committed', 'taken', 'read'])
      expect(command.output).toMatch(new RegExp(`^ +${position} +\\d+$`, 'm'))
    expect(command.output).toMatch(/claims +1, 0 retries, 0 full, 0 aborted, 0 by socket/)
    expect(command.output).toMatch(/gaps +0, 0 bytes/)
  })

  test('--json prints positions as text; a consumer without a ring is named with the reason', async () => {
    const broker = await testBroker()
    await FakeConsumer.connect(broker.socketPath, { name: 'far', transport: 'socket' })
    const none = run('ring', 'stat', '--broker', broker.httpUrl)
    await none.exited
    expect(none.output).toMatch(/^far .*no ring: the consumer asked for the socket$/m)
    await FakeConsumer.connect(broker.socketPath)
    const command = run('ring', 'stat', '--json', '--broker', broker.httpUrl)
    await command.exited
    const zero = { claimed: '0', committed: '0', taken: '0', read: '0' }
    expect(JSON.parse(command.output)).toMatchObject([
      { peer: { name: 'gpu0' }, positions: zero, poisoned: false, pageSizeBytes: 4096 },
    ])
  })

  test('says that no broker answers', async () => {
    const command = run('ring', 'stat', '--broker', 'http://127.0.0.1:1')
    expect((await command.exited).code).toBe(1)
    expect(command.errorLines.join()).toMatch(/FABRIC_BROKER_UNREACHABLE/)
  })
})

describe('fabric-broker serve: signals', () => {
  test('SIGTERM: refuses new items with 503, lets the batch in work end, tells readers, exits 0', async () => {
    const path = join(temporaryFolder(), 'b.sock')
    const broker = await BrokerProcess.start(path)
    const consumer = spawnConsumer(path, { mode: 'hold' })
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.fetch('/v1/items', items(40))
    await until(() => consumer.output.includes('taken'))
    const follower = broker.fetch('/v1/jobs/default/results?follow=true').then((r) => r.text())
    broker.kill('SIGTERM')
    await broker.untilState((state) => state.draining)
    const refused = await broker.fetch('/v1/items', items(1, 8, 'late'))
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({ error: { code: 'FABRIC_DRAINING' } })
    expect((await broker.fetch('/readyz')).status).toBe(503)
    consumer.child.stdin!.write('go\n')
    expect((await follower).trim().split('\n')).toHaveLength(8)
    expect(await broker.exited).toEqual({ code: 0, signal: null })
    const messages = broker.log.map(({ msg }) => msg)
    expect(messages.at(-1)).toMatch(/left$/)
    expect(messages).toContain('drained; 32 items are lost with this process')
  })

  test('a consumer that never ends its batch is waited for until drainTimeoutMs', async () => {
    const path = join(temporaryFolder(), 'b.sock')
    const broker = await BrokerProcess.start(path, '--drain-timeout-ms', '200')
    const consumer = spawnConsumer(path, { mode: 'hold' })
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.fetch('/v1/items', items(8))
    await until(() => consumer.output.includes('taken'))
    broker.kill('SIGINT')
    expect(await broker.exited).toEqual({ code: 0, signal: null })
    expect(broker.log.some(({ msg }) => msg.startsWith('drained; 8 items'))).toBe(true)
  })

  test('a later second signal ends it at once', async () => {
    const path = join(temporaryFolder(), 'b.sock')
    const broker = await BrokerProcess.start(path)
    const consumer = spawnConsumer(path, { mode: 'hold' })
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.fetch('/v1/items', items(8))
    await until(() => consumer.output.includes('taken'))
    await until(() => {
      broker.kill('SIGTERM')
      return broker.child.exitCode !== null
    })
    expect((await broker.exited).code).toBe(143)
  })
})
