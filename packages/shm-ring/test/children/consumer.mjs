// A consumer process. argv: socket path, mode.
//   read   reads every record in place, reports it, releases it
//   hold   takes records and never releases them
//   write  writes through the view
import net from 'node:net'
import { connectUnix, RingReader } from '../../dist/index.js'

const [path, mode] = process.argv.slice(2)
const connection = await connectUnix({ path, hello: Buffer.from('hi'), timeoutMs: 10_000 })
const socket = new net.Socket({ fd: connection.socketFd })
socket.on('error', () => {})
socket.on('close', () => process.send({ brokerGone: true }))
socket.resume()
const reader = RingReader.attach(connection.descriptors)

function sumOf(bytes) {
  let sum = 0
  for (const byte of bytes) sum = (sum + byte) >>> 0
  return sum
}

reader.onReadable(() => {
  for (let record = reader.next(); record; record = reader.next()) {
    const bytes = new Uint8Array(record.payload)
    if (mode === 'write') bytes[100] = 1
    record.take()
    const report = { sequence: record.batchSequence, length: bytes.length, sum: sumOf(bytes) }
    if (mode === 'read') record.release()
    process.send({ ...report, after: bytes.length, held: reader.held })
  }
})
process.send({ ready: reader.capacityBytes, pages: reader.pages })
