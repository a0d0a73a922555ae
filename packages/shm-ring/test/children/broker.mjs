// A broker process that commits some records, claims one more and leaves it open. argv: socket path.
import net from 'node:net'
import { RingWriter, sendDescriptors } from '../../dist/index.js'

const [path] = process.argv.slice(2)
const writer = RingWriter.create({ capacityBytes: 4 << 20 })
const server = net.createServer((socket) => {
  socket.once('data', () => {
    sendDescriptors(socket._handle.fd, Buffer.from([4, 0, 0, 0]), writer.descriptors())
    writer.closePeerDescriptors()
    for (let sequence = 1; sequence <= 3; sequence++) writer.claim(1000).commit(sequence)
    writer.claim(1000)
    process.send({ pages: writer.pages })
  })
})
server.listen(path, () => process.send({ listening: true }))
