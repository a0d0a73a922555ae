// What systemd hears of the broker, at a socket of our own (docs/systemd.md).
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/broker.ts'
import { BrokerProcess, TestProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

const SERVER = join(import.meta.dirname, '../support/notify-socket.py')
const hasSystemd = spawnSync('systemd-notify', ['--version']).status === 0

describe('under systemd', () => {
  test.skipIf(!hasSystemd)(
    'READY=1 once it listens, WATCHDOG=1 while it serves, STOPPING=1 at the end',
    async () => {
      const folder = temporaryFolder()
      const socket = join(folder, 'notify')
      const server = new TestProcess(spawn('python3', [SERVER, socket]))
      await until(() => server.output.includes('listening'))
      const environment = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '400000' }
      const broker = await BrokerProcess.start(join(folder, 'b.sock'), environment)
      const heard = (state: string) =>
        server.output.split('\n').filter((line) => line === state).length
      await until(() => heard('READY=1') === 1)
      await until(() => heard('WATCHDOG=1') >= 2)
      broker.kill('SIGTERM')
      expect(await broker.exited).toEqual({ code: 0, signal: null })
      await until(() => heard('STOPPING=1') === 1)
    },
  )

  test('a broker that cannot tell systemd serves all the same, and says so once', async () => {
    const folder = temporaryFolder()
    const environment = { NOTIFY_SOCKET: join(folder, 'nobody'), WATCHDOG_USEC: '20000' }
    const broker = await BrokerProcess.start(join(folder, 'b.sock'), environment)
    const warnings = () =>
      broker.log.filter(({ msg }) => msg.startsWith('systemd could not be told'))
    await until(() => warnings().length > 0)
    expect((await broker.fetch('/livez')).status).toBe(200)
    expect(warnings()).toHaveLength(1)
  })
})
