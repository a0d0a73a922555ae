// The Unix socket's file: who may have the path, what is replaced, what is left alone.
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import net from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startBroker } from '../../src/index.ts'
import { defaultSocketPath } from '../../src/server/socket-path.ts'
import { temporaryFolder, testBroker } from '../support/broker.ts'
import { BrokerProcess, spawnConsumer } from '../support/processes.ts'
import { until } from '../support/until.ts'

const start = (socket: string) =>
  startBroker({ flags: { socket, http: '127.0.0.1:0', debuggable: true, logLevel: 'silent' } })
const mode = (path: string) => statSync(path).mode & 0o777

describe('socket path', () => {
  test('folder and socket are for this user alone; allowUids opens both', async () => {
    const closed = join(temporaryFolder(), 'fabric', 'b.sock')
    await testBroker({ socket: closed })
    expect([mode(closed), mode(join(closed, '..'))]).toEqual([0o600, 0o700])
    const open = join(temporaryFolder(), 'fabric', 'b.sock')
    await testBroker({ socket: open, allowUids: [12345] })
    expect([mode(open), mode(join(open, '..'))]).toEqual([0o666, 0o755])
  })

  test('a second broker on a live socket is refused and harms nothing', async () => {
    const broker = await testBroker()
    await expect(start(broker.socketPath)).rejects.toMatchObject({ code: 'FABRIC_SOCKET_IN_USE' })
    const socket = net.connect(broker.socketPath)
    await new Promise((resolve) => socket.on('connect', resolve))
    socket.destroy()
  })

  test('a live socket that is not ours to lock is refused too', async () => {
    const path = join(temporaryFolder(), 'b.sock')
    const other = net.createServer().listen(path)
    await until(() => existsSync(path))
    await expect(start(path)).rejects.toMatchObject({ code: 'FABRIC_SOCKET_IN_USE' })
    other.close()
  })

  test('a regular file is refused and left as it was', async () => {
    const path = join(temporaryFolder(), 'b.sock')
    writeFileSync(path, 'precious')
    await expect(start(path)).rejects.toMatchObject({ code: 'FABRIC_SOCKET_PATH', field: 'socket' })
    expect(readFileSync(path, 'utf8')).toBe('precious')
  })

  test('a path longer than a socket address is refused with both lengths', async () => {
    const path = join(temporaryFolder(), `${'x'.repeat(120)}.sock`)
    await expect(start(path)).rejects.toThrow(/at most 107/)
  })

  test('a folder that cannot be made is refused', async () => {
    const file = join(temporaryFolder(), 'file')
    writeFileSync(file, '')
    await expect(start(join(file, 'b.sock'))).rejects.toMatchObject({ code: 'FABRIC_SOCKET_PATH' })
  })

  test('a folder below one that makes no folders is refused, at any depth', async () => {
    for (const path of ['/proc/nope/x.sock', '/proc/nope/deep/er/x.sock'])
      await expect(start(path)).rejects.toMatchObject({ code: 'FABRIC_SOCKET_PATH' })
  })

  test.each([104, 107])('a path of %i bytes with a short name is listened on', async (bytes) => {
    const folder = temporaryFolder()
    const path = join(folder, 'x'.repeat(bytes - Buffer.byteLength(folder) - 3), 's')
    expect(Buffer.byteLength(path)).toBe(bytes)
    const broker = await testBroker({ socket: path })
    expect(readdirSync(dirname(path))).toEqual(['s'])
    const socket = net.connect(path)
    await new Promise((resolve) => socket.on('connect', resolve))
    socket.destroy()
    await broker.stop()
    expect(readdirSync(dirname(path))).toEqual([])
  })

  test('the file is removed at the end, but not if another stands there by then', async () => {
    const broker = await testBroker()
    await broker.stop()
    expect(existsSync(broker.socketPath)).toBe(false)
    const second = await testBroker()
    rmSync(second.socketPath)
    writeFileSync(second.socketPath, 'another')
    await second.stop()
    expect(readFileSync(second.socketPath, 'utf8')).toBe('another')
  })

  test('the default is the system folder, else that of the user’s session', () => {
    const path = defaultSocketPath({ XDG_RUNTIME_DIR: '/run/user/1' })
    expect(['/run/fabric/broker.sock', '/run/user/1/fabric/broker.sock']).toContain(path)
  })
})

describe('socket path: real processes', () => {
  test('the file that kill -9 leaves behind is replaced', async () => {
    const path = join(temporaryFolder(), 'b.sock')
    const first = await BrokerProcess.start(path)
    first.kill('SIGKILL')
    await first.exited
    expect(lstatSync(path).isSocket()).toBe(true)
    await BrokerProcess.start(path)
    const consumer = spawnConsumer(path)
    await until(() => consumer.output.includes('connected'))
  })

  test('of brokers that start at once on a stale socket exactly one wins', async () => {
    const path = join(temporaryFolder(), 'b.sock')
    const stale = await BrokerProcess.start(path)
    stale.kill('SIGKILL')
    await stale.exited
    const racers = [1, 2, 3].map(() => BrokerProcess.spawn(path))
    const lost = (racer: BrokerProcess) => racer.child.exitCode !== null
    await until(() => racers.filter(lost).length === 2)
    for (const racer of racers.filter(lost)) {
      expect(racer.child.exitCode).toBe(1)
      expect(racer.errorLines.join()).toContain('FABRIC_SOCKET_IN_USE')
    }
    const winner = racers.find((racer) => !lost(racer))!
    await winner.listening()
    const consumer = spawnConsumer(path)
    await until(() => consumer.output.includes('connected'))
    expect((await winner.state()).consumers).toHaveLength(1)
  })
})
