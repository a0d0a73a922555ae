// Who a consumer is: its connection, and neither its process id nor its word.
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { items, testBroker } from '../support/broker.ts'
import { spawnConsumer, TestProcess } from '../support/processes.ts'

const CONSUMER = join(import.meta.dirname, '../support/consumer-process.mjs')
const NAMESPACE = ['--pid', '--fork', '--kill-child']

/** Process 1 of a world of its own, as in a container. */
const inNamespace = (socket: string, name: string) =>
  new TestProcess(
    spawn('unshare', [...NAMESPACE, process.execPath, CONSUMER, socket, name, 'work', 'ring']),
  )

/** Root has it; a container may not give it. */
const mayMakeNamespaces = spawnSync('unshare', [...NAMESPACE, 'true']).status === 0
const inNamespaces = test.skipIf(!mayMakeNamespaces)

inNamespaces(
  'two consumers with the same process id are two, and the death of one is not the other’s (needs the right to make namespaces)',
  async () => {
    const broker = await testBroker()
    const first = inNamespace(broker.socketPath, 'one')
    inNamespace(broker.socketPath, 'two')
    await broker.untilState((state) => state.consumers.length === 2)
    await broker.post('/v1/items', items(64))
    await broker.untilState((state) => state.items.settled.completed === 64)
    first.kill('SIGKILL')
    const { consumers } = await broker.untilState((state) => state.consumers.length === 1)
    expect(consumers[0].name).toBe('two')
    await broker.post('/v1/items', items(64, 8, 'b'))
    await broker.untilState((state) => state.items.settled.completed === 128)
  },
)

test('a death is told by the kernel, with nobody asking: no timer of ours has to run for it', async () => {
  // Longer than the test may take, so no lease and no renewal tells of it.
  const broker = await testBroker({ leaseTimeoutMs: 3_600_000 })
  const consumer = spawnConsumer(broker.socketPath, { mode: 'hold' })
  await broker.untilState((state) => state.consumers.length === 1)
  consumer.kill('SIGKILL')
  await broker.untilState((state) => state.consumers.length === 0)
  expect(broker.log.some(({ msg }) => msg.includes('died: connection_closed'))).toBe(true)
})
