// Hands a ring from the process that writes to the one that reads, as the broker does.
import { rmSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import { connectUnix, RingReader, sendDescriptors } from '@fabric/shm-ring'

const EMPTY_FRAME = Uint8Array.from([4, 0, 0, 0])

/**
 * Offers the ring at `path` to the first who connects.
 * @returns {Promise<{ taken: Promise<void> }>} resolves once it listens
 */
export async function offerRing(path, writer) {
  rmSync(path, { force: true })
  const server = createServer()
  const taken = new Promise((resolve) => {
    server.on('connection', (socket) => {
      socket.on('error', () => {})
      sendDescriptors(socket._handle.fd, EMPTY_FRAME, writer.descriptors())
      writer.closePeerDescriptors()
      server.close()
      resolve()
    })
  })
  await new Promise((resolve) => server.listen(path, resolve))
  return { taken }
}

/** @returns {Promise<RingReader>} */
export async function attachRing(path) {
  const { socketFd, descriptors } = await connectUnix({ path, hello: EMPTY_FRAME, timeoutMs: 5000 })
  new Socket({ fd: socketFd }).destroy()
  return RingReader.attach(descriptors)
}
