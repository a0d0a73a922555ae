// Consumers that die or fall silent, as real processes: nothing is lost, nothing settles twice (S24
// to S26).
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { items, temporaryFolder, testBroker } from '../support/broker.ts'
import { BrokerProcess, spawnConsumer, TestProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

const transports = ['ring', 'socket'] as const

async function resultIds(url: string): Promise<string[]> {
  const text = await (await fetch(`${url}/v1/jobs/default/results`)).text()
  const lines = text.trim().split('\n')
  return lines.map((line) => JSON.parse(line).id)
}

describe.each(transports)('death of a consumer by %s', (transport) => {
  test('kill -9 in the middle of a batch: another finishes, each item ends once', async () => {
    const broker = await testBroker()
    const victim = spawnConsumer(broker.socketPath, { mode: 'hold', transport })
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.post('/v1/items', items(50))
    await broker.untilState((state) => state.items.leased === 24)
    victim.kill('SIGKILL')
    await broker.untilState((state) => state.consumers.length === 0)
    expect(broker.state().items).toMatchObject({ leased: 0, waiting: 50, reclaimed: 24 })
    spawnConsumer(broker.socketPath, { name: 'gpu1', transport })
    await broker.post('/v1/jobs/default/flush')
    await broker.untilState((state) => state.items.settled.completed === 50)
    const ids = await resultIds(broker.httpUrl)
    expect([ids.length, new Set(ids).size]).toEqual([50, 50])
    expect(broker.log.some(({ msg }) => msg === 'reclaimed 24 items')).toBe(true)
  })

  test('SIGSTOP: the lease ends, another finishes; what the first says later is dropped', async () => {
    const broker = await testBroker({ leaseTimeoutMs: 300 })
    const sleeper = spawnConsumer(broker.socketPath, { mode: 'hold', transport })
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.post('/v1/items', items(16))
    await until(() => sleeper.output.includes('taken'))
    sleeper.kill('SIGSTOP')
    await broker.untilState((state) => state.consumers.length === 0)
    expect(broker.log.some(({ msg }) => msg === 'consumer gpu0 died: lease_timeout')).toBe(true)
    spawnConsumer(broker.socketPath, { name: 'gpu1', transport })
    await broker.untilState((state) => state.items.settled.completed === 16)
    sleeper.child.stdin!.write('go\n')
    sleeper.kill('SIGCONT')
    await sleeper.exited
    const ids = await resultIds(broker.httpUrl)
    expect([ids.length, new Set(ids).size]).toEqual([16, 16])
  })
})

describe('a consumer that forked without exec, as Python’s multiprocessing does', () => {
  // The child holds the socket, the pipes and the mapping of its dead parent.
  const FORKS = `
import os, sys
sys.path.insert(0, sys.argv[2])
from read_ring import Consumer
consumer = Consumer(sys.argv[1], {"batchSize": 8, "tokens": 64, "inputLength": 64, "model": 0})
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
via, batch = next(consumer.batches())
print("took", flush=True)
sys.stdin.read()
`
  const EXAMPLES = join(import.meta.dirname, '../../../shm-ring/examples')

  test('is noticed by its pidfd when it dies, long before its lease ends', async () => {
    const broker = await testBroker({ leaseTimeoutMs: 600_000 })
    const parent = new TestProcess(
      spawn('python3', ['-B', '-c', FORKS, broker.socketPath, EXAMPLES], { stdio: 'pipe' }),
    )
    await broker.untilState((state) => state.consumers.length === 1)
    await broker.post('/v1/items', items(8))
    await until(() => parent.output.includes('took'))
    parent.kill('SIGKILL')
    await broker.untilState((state) => state.consumers.length === 0)
    expect(broker.log.some(({ msg }) => msg === 'consumer python died: connection_closed')).toBe(
      true,
    )
    expect(broker.state().items).toMatchObject({ leased: 0, waiting: 8, reclaimed: 8 })
    parent.child.stdin!.end()
  })
})

test('kill -9 of the broker ends its consumers’ connections', async () => {
  const path = join(temporaryFolder(), 'b.sock')
  const broker = await BrokerProcess.start(path)
  const consumer = spawnConsumer(path)
  await broker.untilState((state) => state.consumers.length === 1)
  broker.kill('SIGKILL')
  expect((await consumer.exited).code).toBe(0)
})
