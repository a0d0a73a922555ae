// A consumer for the tests, in a process of its own: connects, renews, and works or holds what it
// has taken until a line comes on standard input. Arguments: socket, name, mode, transport.
import net from 'node:net'
import {
  decodeWelcome,
  encodeFrame,
  encodeHello,
  encodeResults,
  encodeTaken,
  FRAME_HEADER_BYTES,
  FrameReader,
  FrameType,
  openBatch,
} from '@fabric/protocol'
import { connectUnix, RING_ABI_VERSION, RingReader } from '@fabric/shm-ring'

const [path, name, mode, transport] = process.argv.slice(2)
const contract = { batchSize: 8, tokens: 64, inputLength: 64, model: 0 }
const hello = {
  protocol: 1,
  ringAbi: RING_ABI_VERSION,
  name,
  contract,
  transport,
  pid: process.pid,
  host: 'test',
}
const { socketFd, reply, descriptors } = await connectUnix({
  path,
  hello: encodeHello(hello),
  timeoutMs: 10_000,
})
const { renewEveryMs } = decodeWelcome(reply.subarray(FRAME_HEADER_BYTES))
const socket = new net.Socket({ fd: socketFd, readable: true, writable: true })
const reader = new FrameReader()
const waiting = []
let holding = mode === 'hold'
let busy = null
let draining = false

function settle() {
  const { view, release } = busy
  const results = Array.from({ length: view.size }, (_, index) => ({
    index,
    outcome: 0,
    encoding: 3,
    value: new TextEncoder().encode(JSON.stringify(name)),
    truncatedTo: 0,
  }))
  socket.write(encodeFrame(FrameType.results, encodeResults(view.batch, view.brokerLife, results)))
  release()
  busy = null
  next()
}

const idOf = ({ ids, idEnds }, index) =>
  new TextDecoder().decode(ids.slice(index === 0 ? 0 : idEnds[index - 1], idEnds[index]))

const NOTHING = { encoding: 0, value: new Uint8Array(0) }
const TOO_MUCH = {
  encoding: 4,
  value: new TextEncoder().encode('{"code":"FABRIC_OUT_OF_MEMORY","message":"too much"}'),
}

/** Gives the batch back, untouched. */
function giveBack(reason) {
  const { view, release } = busy
  const results = Array.from({ length: view.size }, (_, index) => ({
    index,
    outcome: 3,
    truncatedTo: 0,
    ...reason,
  }))
  socket.write(encodeFrame(FrameType.results, encodeResults(view.batch, view.brokerLife, results)))
  release()
  busy = null
  next()
}

function next() {
  if (busy !== null || draining || waiting.length === 0) return
  busy = waiting.shift()
  socket.write(encodeTaken(busy.view.batch))
  process.stdout.write(`taken ${busy.view.batch}\n`)
  const ids = Array.from({ length: busy.view.size }, (_, index) => idOf(busy.view, index))
  if (mode === 'mortal' && ids.includes('poison')) process.kill(process.pid, 'SIGKILL')
  else if (mode === 'small' && ids.length > 4) giveBack(TOO_MUCH)
  else if (mode === 'nack') giveBack(NOTHING)
  else if (!holding) settle()
}

function add(buffer, release) {
  if (mode === 'stillborn') process.kill(process.pid, 'SIGKILL')
  waiting.push({ view: openBatch(buffer), release })
  next()
}

setInterval(() => socket.write(encodeFrame(FrameType.renew)), renewEveryMs)
socket.on('error', () => {})
socket.on('close', () => process.exit(0))
socket.on('data', (chunk) => {
  reader.push(chunk)
  for (let frame = reader.next(); frame !== null; frame = reader.next()) {
    if (frame.type === FrameType.batch) add(frame.body.slice().buffer, () => {})
    if (frame.type === FrameType.drain) draining = true
  }
})
process.stdin.on('data', () => {
  holding = false
  if (busy !== null) settle()
})
if (descriptors.length > 0) {
  const ring = RingReader.attach(descriptors)
  ring.onReadable(() => {
    for (let record = ring.next(); record !== null; record = ring.next()) {
      const { payload } = record
      add(payload, () => record.release())
    }
  })
}
process.stdout.write('connected\n')
