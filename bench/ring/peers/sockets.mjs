// Node's own sockets, Unix and TCP. The kernel copies each record straight to its place in one buffer
// (net's `onread`), the least work that leaves a record in one piece.
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { recordAt, source, Tally } from '../source.mjs'

const HIGH_WATER_BYTES = 4 * 1024 * 1024

/** @param {string | number} endpoint a path or a port */
const address = (endpoint) =>
  typeof endpoint === 'number' ? { port: endpoint, host: '127.0.0.1' } : { path: endpoint }

function listen(server, endpoint) {
  if (typeof endpoint === 'string') rmSync(endpoint, { force: true })
  return new Promise((resolve) => server.listen(address(endpoint), resolve))
}

export async function openWriter(endpoint) {
  const bytes = Buffer.from(source().buffer)
  let socket
  let connected
  const server = createServer({ highWaterMark: HIGH_WATER_BYTES, noDelay: true }, (accepted) => {
    socket = accepted
    socket.on('error', () => {})
    connected?.()
  })
  await listen(server, endpoint)
  return {
    prepare: () => (socket ? undefined : new Promise((resolve) => (connected = resolve))),
    send: (size, count) =>
      new Promise((resolve) => {
        let sent = 0
        const pump = () => {
          while (sent < count) {
            const at = recordAt(sent++, size)
            if (!socket.write(bytes.subarray(at, at + size))) return socket.once('drain', pump)
          }
          socket = undefined
          resolve()
        }
        pump()
      }),
  }
}

/** A connection for each burst, made before the clock starts: its buffer has the record's size. */
export async function openReader(endpoint) {
  return {
    receive: (size, count, ready) =>
      new Promise((resolve) => {
        const record = new Uint8Array(size)
        let filled = 0
        const tally = new Tally(count, (result) => {
          socket.destroy()
          resolve(result)
        })
        const socket = connect({
          ...address(endpoint),
          noDelay: true,
          onread: {
            buffer: () => record.subarray(filled),
            callback: (bytes) => {
              filled += bytes
              if (filled < size) return true
              filled = 0
              tally.add(record)
              return true
            },
          },
        })
        socket.on('connect', ready)
      }),
  }
}

/** 64 bytes, and the next message only after the answer: each arrives whole. */
export async function openLink(side, endpoint, onMessage) {
  const socket = side === 'ping' ? await accept(endpoint) : await connectWhenThere(endpoint)
  socket.on('data', (bytes) => {
    const receivedNs = process.hrtime.bigint()
    onMessage(bytes.readBigUInt64LE(0), bytes.readBigUInt64LE(8), receivedNs)
  })
  const message = Buffer.alloc(64)
  const send = (echo) => {
    message.writeBigUInt64LE(echo, 8)
    message.writeBigUInt64LE(process.hrtime.bigint(), 0)
    socket.write(message)
  }
  return { send }
}

function accept(endpoint) {
  return new Promise((resolve) => {
    listen(createServer({ noDelay: true }, resolve), endpoint)
  })
}

function connectWhenThere(endpoint) {
  return new Promise((resolve) => {
    const attempt = () => {
      const socket = connect({ ...address(endpoint), noDelay: true })
      socket.on('connect', () => resolve(socket))
      socket.on('error', () => setTimeout(attempt, 10))
    }
    attempt()
  })
}
