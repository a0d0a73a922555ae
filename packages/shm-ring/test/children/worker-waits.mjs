// Reads a ring by waitSync(). workerData: socket path. Reports sums; ends when the writer is gone.
import net from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { connectUnix, RingReader } from '../../dist/index.js'

const connection = await connectUnix({
  path: workerData,
  hello: Buffer.from('hi'),
  timeoutMs: 10_000,
})
const socket = new net.Socket({ fd: connection.socketFd }).on('error', () => {})
const reader = RingReader.attach(connection.descriptors)
parentPort.postMessage('ready')
let records = 0
let bytes = 0
while (reader.waitSync(60_000)) {
  for (let record = reader.next(); record; record = reader.next()) {
    records += 1
    bytes += record.payload.byteLength
    record.release()
  }
}
parentPort.postMessage({ records, bytes, ended: reader.ended })
reader.close()
socket.destroy()
