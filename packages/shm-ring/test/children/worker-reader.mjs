// Attaches, reports each record and holds it; ends with poll and records open.
import net from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { connectUnix, RingReader } from '../../dist/index.js'

const connection = await connectUnix({
  path: workerData,
  hello: Buffer.from('hi'),
  timeoutMs: 10_000,
})
new net.Socket({ fd: connection.socketFd }).on('error', () => {}).resume()
const reader = RingReader.attach(connection.descriptors)
reader.onReadable(() => {
  for (let record = reader.next(); record; record = reader.next()) {
    parentPort.postMessage({ sequence: record.batchSequence, length: record.payload.byteLength })
  }
})
parentPort.postMessage('ready')
