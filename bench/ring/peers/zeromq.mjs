// ZeroMQ over ipc://, its own threads doing the I/O. Sent without a copy on the sender's side.
import { Pair, Pull, Push } from 'zeromq'
import { recordAt, SOURCE_BYTES, source, Tally } from '../source.mjs'

const queued = () => Math.max(4, SOURCE_BYTES / (256 * 1024))

export async function openWriter(endpoint) {
  const socket = new Push({ sendHighWaterMark: queued() })
  await socket.bind(`ipc://${endpoint}`)
  const bytes = Buffer.from(source().buffer)
  return {
    send: async (size, count) => {
      for (let sent = 0; sent < count; sent++) {
        const at = recordAt(sent, size)
        await socket.send(bytes.subarray(at, at + size))
      }
    },
  }
}

export async function openReader(endpoint) {
  const socket = new Pull({ receiveHighWaterMark: queued() })
  socket.connect(`ipc://${endpoint}`)
  let tally
  const run = async () => {
    for await (const [message] of socket) tally.add(message)
  }
  run()
  return {
    receive: (_size, count, ready) =>
      new Promise((resolve) => {
        tally = new Tally(count, resolve)
        ready()
      }),
  }
}

export async function openLink(side, endpoint, onMessage) {
  const socket = new Pair()
  if (side === 'ping') await socket.bind(`ipc://${endpoint}`)
  else socket.connect(`ipc://${endpoint}`)
  const run = async () => {
    for await (const [bytes] of socket) {
      const receivedNs = process.hrtime.bigint()
      onMessage(bytes.readBigUInt64LE(0), bytes.readBigUInt64LE(8), receivedNs)
    }
  }
  run()
  const message = Buffer.alloc(64)
  const send = (echo) => {
    message.writeBigUInt64LE(echo, 8)
    message.writeBigUInt64LE(process.hrtime.bigint(), 0)
    socket.send(message)
  }
  return { send }
}
