// Who may connect and who may reach into the broker: processes of other users, and of the broker's
// own. They need root, to become another user.
import { spawn } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder, testBroker } from '../support/broker.ts'
import { TestProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

const NOBODY = 65534
const asNobody = { uid: NOBODY, gid: NOBODY, stdio: 'pipe' } as const
const EXAMPLES = join(import.meta.dirname, '../../../shm-ring/examples')
const COMMAND = join(import.meta.dirname, '../../bin/fabric-broker.js')

const CONNECTS = `
import sys
sys.path.insert(0, sys.argv[2])
from read_ring import Consumer
try:
    Consumer(sys.argv[1], {"batchSize": 8, "tokens": 64, "inputLength": 64, "model": 0})
    print("welcome")
except ConnectionError as error:
    print(error)
`

const REACHES_IN = `
import sys
try:
    open(f"/proc/{sys.argv[1]}/mem", "r+b")
    print("opened")
except PermissionError:
    print("refused")
`

const python = (code: string, ...args: string[]) =>
  new TestProcess(spawn('python3', ['-B', '-c', code, ...args], asNobody))

describe.skipIf(process.getuid?.() !== 0)('other users (needs root, to become one)', () => {
  test.each([
    ['is welcome when allowUids names it', NOBODY, /welcome/],
    ['is refused by its credentials, whatever the mode of the socket', 12345, /FABRIC_FORBIDDEN/],
  ])('a consumer of another user %s', async (_, allowed, answer) => {
    const broker = await testBroker({ allowUids: [allowed] })
    chmodSync(join(broker.socketPath, '..'), 0o755)
    const consumer = python(CONNECTS, broker.socketPath, EXAMPLES)
    await consumer.exited
    expect(consumer.output).toMatch(answer)
  })

  test.each([
    ['cannot reach into the broker', [], 'refused'],
    ['can with --debuggable', ['--debuggable', 'true'], 'opened'],
  ])('a process of the broker’s own user %s', async (_, flags, answer) => {
    const folder = temporaryFolder()
    chownSync(folder, NOBODY, NOBODY)
    const fixed = ['serve', '--socket', join(folder, 'b.sock'), '--http', '127.0.0.1:0']
    const broker = new TestProcess(spawn(process.execPath, [COMMAND, ...fixed, ...flags], asNobody))
    await until(() => {
      if (broker.child.exitCode !== null) throw new Error(`ended: ${broker.errorLines}`)
      return broker.errorLines.some((line) => line.includes('httpUrl'))
    })
    const attacker = python(REACHES_IN, String(broker.child.pid))
    await attacker.exited
    expect(attacker.output.trim()).toBe(answer)
    broker.kill('SIGTERM')
    await broker.exited
  })
})
