import { once } from 'node:events'
import { closeSync, readdirSync, renameSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connectUnix, peerCredentials, RingReader, sendDescriptors } from '../dist/index.js'
import { createWriter, descriptorOf, frame, temporaryFolder } from './harness.js'

const hello = Buffer.from('hi')

async function listen(onConnection: (socket: net.Socket) => void): Promise<string> {
  const path = join(temporaryFolder(), 'broker.sock')
  const server = net.createServer((socket) => {
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    onConnection(socket)
  })
  onTestFinished(() => void server.close())
  server.listen(path)
  await once(server, 'listening')
  return path
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length
}

describe('control socket', () => {
  it('goes on as a Node socket after the handshake, with no byte lost', async () => {
    const path = await listen((socket) => {
      socket.once('data', (bytes) => {
        sendDescriptors(descriptorOf(socket), frame('welcome'), [])
        socket.end(`after ${bytes}`)
      })
    })
    const connection = await connectUnix({ path, hello, timeoutMs: 10_000 })
    expect(Buffer.from(connection.reply)).toEqual(frame('welcome'))
    expect(connection.descriptors).toEqual([])
    const socket = new net.Socket({ fd: connection.socketFd })
    let text = ''
    for await (const chunk of socket) text += chunk
    expect(text).toBe('after hi')
  })

  it('knows its peer', async () => {
    let peer = { pid: 0, uid: -1, gid: -1 }
    const path = await listen((socket) => {
      peer = peerCredentials(descriptorOf(socket))
      socket.once('data', () => socket.end(frame()))
    })
    const { socketFd } = await connectUnix({ path, hello, timeoutMs: 10_000 })
    new net.Socket({ fd: socketFd }).destroy()
    expect(peer).toEqual({ pid: process.pid, uid: process.getuid!(), gid: process.getgid!() })
  })

  it('says that there is no socket', async () => {
    const path = join(temporaryFolder(), 'none.sock')
    await expect(connectUnix({ path, hello, timeoutMs: 1000 })).rejects.toMatchObject({
      code: 'RING_CONNECT_FAILED',
      field: 'path',
      message: `can't connect to ${path}: ENOENT (No such file or directory)`,
    })
  })

  it('says that nobody listens at a stale socket file', async () => {
    const path = await listen(() => {})
    const stale = `${path}.stale`
    renameSync(path, stale)
    const server = net.createServer().listen(path)
    await once(server, 'listening')
    renameSync(path, `${path}.moved`)
    server.close()
    await once(server, 'close')
    await expect(
      connectUnix({ path: `${path}.moved`, hello, timeoutMs: 1000 }),
    ).rejects.toMatchObject({
      code: 'RING_CONNECT_FAILED',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('gives up on a broker that does not answer', async () => {
    const path = await listen(() => {})
    await expect(connectUnix({ path, hello, timeoutMs: 50 })).rejects.toMatchObject({
      code: 'RING_HANDSHAKE_TIMEOUT',
      field: 'timeoutMs',
    })
  })

  it('says that the broker closed, or sent no frame', async () => {
    const closing = await listen((socket) => void socket.end())
    await expect(connectUnix({ path: closing, hello, timeoutMs: 10_000 })).rejects.toMatchObject({
      code: 'RING_HANDSHAKE_FAILED',
    })
    const endless = await listen((socket) => void socket.write(Buffer.alloc(8, 0xff)))
    await expect(connectUnix({ path: endless, hello, timeoutMs: 10_000 })).rejects.toMatchObject({
      code: 'RING_HANDSHAKE_FAILED',
    })
  })

  it('hears why it is refused by a broker that closes before it has read the hello', async () => {
    const path = await listen((socket) => {
      socket.pause()
      socket.end(frame('not you'), () => socket.destroy())
    })
    // Larger than the socket's buffer: it is still being sent when the broker closes.
    const long = Buffer.alloc(4 << 20)
    const { reply, socketFd } = await connectUnix({ path, hello: long, timeoutMs: 10_000 })
    onTestFinished(() => closeSync(socketFd))
    expect(Buffer.from(reply.subarray(4)).toString()).toBe('not you')
  })

  it('keeps no descriptor open that is not a ring', async () => {
    const before = openDescriptors()
    const writer = createWriter()
    const path = await listen((socket) => {
      socket.once('data', () => {
        sendDescriptors(descriptorOf(socket), frame(), writer.descriptors().reverse())
      })
    })
    for (let round = 0; round < 10; round++) {
      const { socketFd, descriptors } = await connectUnix({ path, hello, timeoutMs: 10_000 })
      expect(() => RingReader.attach(descriptors)).toThrow(
        expect.objectContaining({ code: 'RING_DESCRIPTOR_INVALID' }),
      )
      const socket = new net.Socket({ fd: socketFd })
      socket.destroy()
      await once(socket, 'close')
    }
    writer.close()
    await expect.poll(openDescriptors).toBeLessThan(before + 8)
    expect(() => RingReader.attach([])).toThrow(
      expect.objectContaining({ code: 'RING_DESCRIPTOR_INVALID' }),
    )
  })

  it('refuses arguments of the wrong kind', () => {
    expect(() => sendDescriptors(-1, frame(), [])).toThrow(RangeError)
    expect(() => sendDescriptors(0, 'x' as unknown as Uint8Array, [])).toThrow(TypeError)
    expect(() => peerCredentials(99_999)).toThrow(
      expect.objectContaining({ code: 'RING_SYSTEM_CALL_FAILED' }),
    )
  })
})
