// Serves a ring with an open claim before a committed record.
import net from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { RingWriter, sendDescriptors } from '../../dist/index.js'

const writer = RingWriter.create({ capacityBytes: 4 << 20 })
writer.claim(100)
writer.claim(100).commit(2)
const server = net.createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => {
    sendDescriptors(socket._handle.fd, Buffer.from([4, 0, 0, 0]), writer.descriptors())
    writer.closePeerDescriptors()
  })
})
server.listen(workerData, () => parentPort.postMessage('listening'))
parentPort.on('message', () => process.exit(0))
