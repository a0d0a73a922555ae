// `verify` and `dump` on the folder of a broker that runs: each reads one state of it, whatever is written
// meanwhile, and the broker does not notice.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { items, temporaryFolder, testBroker } from '../support/broker.ts'
import { FakeConsumer } from '../support/fake-consumer.ts'
import { run } from '../support/processes.ts'

test('a folder that a broker writes to is in order at any moment, and can be dumped', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const broker = await testBroker({ dataDir })
  await broker.post('/v1/items', items(100, 8, 'first'))
  const consumer = await FakeConsumer.connect(broker.socketPath)
  let isOver = false
  let posted = 100
  const posting = (async () => {
    for (let round = 0; !isOver; round++) {
      await broker.post('/v1/items', items(100, 8, `r${round}-`))
      posted += 100
    }
    await broker.post('/v1/jobs/default/flush')
  })()
  const working = consumer.work(() => isOver && broker.state().items.settled.completed === posted)
  for (let i = 0; i < 2; i++) {
    const verify = run('verify', '--data-dir', dataDir, '--json')
    expect((await verify.exited).code).toBe(0)
    expect(JSON.parse(verify.output)).toMatchObject({ problems: [], jobs: 1 })
    const dump = run('dump', '--data-dir', dataDir, '--items')
    expect((await dump.exited).code).toBe(0)
    expect(dump.errorLines).toEqual([])
    const lines = dump.output.trim().split('\n')
    for (const line of lines)
      if (line !== '') expect(JSON.parse(line)).toMatchObject({ job: 'default' })
  }
  isOver = true
  await posting
  await working
  expect(broker.state().items).toMatchObject({ waiting: 0, settled: { completed: posted } })
})
