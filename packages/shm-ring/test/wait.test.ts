// Waiting: for records on a worker's thread, for space with a deadline, for the end of a peer.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type RingWriter, watchPeer } from '../dist/index.js'
import { createWriter, descriptorOf, pair, put, serve, temporaryFolder } from './harness.js'

function fillUp(writer: RingWriter): void {
  while (true) {
    const claim = writer.claim(400_000)
    if (!claim) return
    claim.commit(1)
  }
}

describe('waitSync', () => {
  it('finds every record in a worker that does nothing else, and the end of the writer', async () => {
    const writer = createWriter()
    const worker = new Worker(new URL('children/worker-waits.mjs', import.meta.url), {
      workerData: await serve(writer),
    })
    expect((await once(worker, 'message'))[0]).toBe('ready')
    let bytes = 0
    for (let sequence = 1; sequence <= 500; sequence++) {
      const claim = await writer.claimAsync(100 * sequence)
      bytes += claim!.byteLength
      claim!.commit(sequence)
      // Half of them while it sleeps.
      if (sequence % 2 === 0) await new Promise(setImmediate)
    }
    const report = once(worker, 'message')
    const exit = once(worker, 'exit')
    writer.close()
    expect((await report)[0]).toEqual({ records: 500, bytes, ended: true })
    await exit
  })

  it('ends at its time, and onReadable still works after it', async () => {
    const { writer, reader } = await pair()
    const begin = performance.now()
    expect(reader.waitSync(120)).toBe(false)
    expect(performance.now() - begin).toBeGreaterThanOrEqual(119)
    expect(reader.waitSync(0)).toBe(false)
    const called = new Promise<void>((resolve) => {
      reader.onReadable(() => {
        if (reader.next()) resolve()
      })
    })
    put(writer, 1, 10, 1)
    await called
  })

  it('does not keep worker.terminate() waiting', async () => {
    for (let round = 0; round < 5; round++) {
      const worker = new Worker(new URL('children/worker-waits.mjs', import.meta.url), {
        workerData: await serve(createWriter()),
      })
      expect((await once(worker, 'message'))[0]).toBe('ready')
      const begin = performance.now()
      await worker.terminate()
      expect(performance.now() - begin).toBeLessThan(20_000)
    }
  })
})

describe('claimAsync', () => {
  it('claims at once where there is space', async () => {
    const claim = await createWriter().claimAsync(100, { timeoutMs: 0 })
    expect(claim!.byteLength).toBe(100)
  })

  it('answers null when its time is over, and the ring is as before', async () => {
    const { writer, reader } = await pair()
    fillUp(writer)
    expect(await writer.claimAsync(400_000, { timeoutMs: 20 })).toBe(null)
    expect(await writer.claimAsync(400_000, { timeoutMs: 0 })).toBe(null)
    const later = writer.claimAsync(400_000)
    reader.next()!.release()
    reader.next()!.release()
    expect(await later).not.toBe(null)
  })

  it('is ended by a signal with its reason', async () => {
    const { writer } = await pair()
    fillUp(writer)
    const stop = new AbortController()
    const claim = writer.claimAsync(400_000, { signal: stop.signal })
    stop.abort(new Error('no longer wanted'))
    await expect(claim).rejects.toThrow('no longer wanted')
    await expect(writer.claimAsync(1, { signal: stop.signal })).rejects.toThrow('no longer wanted')
  })

  it('serves claims in the order in which they asked', async () => {
    const { writer, reader } = await pair()
    fillUp(writer)
    const order: string[] = []
    const all = ['large', 'small', 'third'].map(async (name) => {
      const claim = await writer.claimAsync(name === 'small' ? 64 : 400_000)
      order.push(name)
      claim!.commit(2)
    })
    for (let record = reader.next(); order.length < 3; record = reader.next()) {
      record?.release()
      await new Promise(setImmediate)
    }
    await Promise.all(all)
    expect(order).toEqual(['large', 'small', 'third'])
  })

  it('lets a smaller claim go on when the larger one before it gives up', async () => {
    const { writer } = await pair()
    while (writer.claim(400_000)) {}
    const large = writer.claimAsync(400_000, { timeoutMs: 20 })
    const small = writer.claimAsync(0)
    expect(await large).toBe(null)
    expect(await small).not.toBe(null)
  })

  it('rejects for what no wait can help: too large, closed, poisoned', async () => {
    const { writer } = await pair()
    const code = (code: string) => expect.objectContaining({ code })
    await expect(writer.claimAsync(2 ** 22)).rejects.toEqual(code('RING_RECORD_TOO_LARGE'))
    fillUp(writer)
    const waiting = writer.claimAsync(400_000)
    writer.close()
    await expect(waiting).rejects.toEqual(code('RING_CLOSED'))
  })
})

describe('watchPeer', () => {
  // A fork without exec keeps the connection of its parent open. Node has no such fork, Python has.
  const FORKS = `
import os, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
peer.send(b"forked")
sys.stdin.read(1)
os._exit(0)
`

  it('tells that the peer has ended, although its child holds the socket', async () => {
    const path = join(temporaryFolder(), 'peer.sock')
    const server = net.createServer().listen(path)
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const peer = spawn('python3', ['-c', FORKS, path], { stdio: ['pipe', 'inherit', 'inherit'] })
    onTestFinished(() => void peer.stdin.end())
    const [socket] = (await once(server, 'connection')) as [net.Socket]
    let closed = false
    socket.on('close', () => {
      closed = true
    })
    const gone = new Promise<void>((resolve) => {
      const watch = watchPeer(descriptorOf(socket), resolve)
      expect(watch).not.toBe(null)
      onTestFinished(() => watch!.close())
    })
    expect(String((await once(socket, 'data'))[0])).toBe('forked')
    peer.kill('SIGKILL')
    await gone
    expect(closed).toBe(false)
    socket.destroy()
  })

  it('tells of a peer that had ended before, and nothing after close', async () => {
    const path = join(temporaryFolder(), 'peer.sock')
    const server = net.createServer({ allowHalfOpen: true }).listen(path)
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const peer = spawn('python3', [
      '-c',
      'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])',
      path,
    ])
    const connected = once(server, 'connection') as Promise<[net.Socket]>
    await once(peer, 'exit')
    const [socket] = await connected
    onTestFinished(() => void socket.destroy())
    await new Promise<void>((resolve) => void watchPeer(descriptorOf(socket), resolve))
    let told = false
    watchPeer(descriptorOf(socket), () => {
      told = true
    })!.close()
    await new Promise(setImmediate)
    expect(told).toBe(false)
  })

  it('answers null where nothing can be watched', () => {
    const file = openSync('/dev/null', 'r')
    onTestFinished(() => closeSync(file))
    expect(watchPeer(file, () => {})).toBe(null)
  })
})
