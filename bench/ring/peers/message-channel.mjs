// A worker thread of the same process. Buffers are filled, transferred, read and transferred back, so
// that none is ever allocated anew: the best that a MessageChannel can do.
import { isMainThread, MessageChannel, Worker, workerData } from 'node:worker_threads'
import { kernels, recordAt, SOURCE_BYTES, source, Tally } from '../source.mjs'

const BUFFERS_MAX = 1024

/** Writer and reader live in this one process. */
export const oneProcess = true

export async function openWriter() {
  const port = openWorker()
  const answers = new Map()
  let pool = []
  let pump = () => {}
  port.on('message', (message) => {
    if (message instanceof ArrayBuffer) {
      pool.push(message)
      pump()
    } else answers.get(message.type)(message)
  })
  const bytes = source()
  return {
    prepare: (size) => {
      const buffers = Math.min(SOURCE_BYTES / size, BUFFERS_MAX)
      pool = Array.from({ length: buffers }, () => new ArrayBuffer(size).slice(0))
    },
    send: (size, count) =>
      new Promise((resolve) => {
        let sent = 0
        pump = () => {
          while (sent < count && pool.length > 0) {
            const buffer = pool.pop()
            kernels.copy(buffer, 0, bytes, recordAt(sent++, size), size)
            port.postMessage(buffer, [buffer])
          }
          if (sent === count) resolve()
        }
        pump()
      }),
    receive: (_size, count, ready) =>
      new Promise((resolve) => {
        answers.set('ready', ready)
        answers.set('done', resolve)
        port.postMessage({ count })
      }),
  }
}

function openWorker() {
  const { port1, port2 } = new MessageChannel()
  new Worker(new URL(import.meta.url), { workerData: { benchPort: port2 }, transferList: [port2] })
  return port1
}

export async function openLink(_side, _endpoint, onMessage) {
  const port = openWorker()
  port.on('message', ([sentNs, echo]) => onMessage(sentNs, echo, process.hrtime.bigint()))
  return { send: (echo) => port.postMessage([process.hrtime.bigint(), echo]) }
}

function serve(port) {
  let tally
  port.on('message', (message) => {
    if (message instanceof ArrayBuffer) {
      tally.add(message)
      port.postMessage(message, [message])
    } else if (Array.isArray(message)) {
      const receivedNs = process.hrtime.bigint()
      port.postMessage([process.hrtime.bigint(), receivedNs - message[0]])
    } else {
      tally = new Tally(message.count, (result) => port.postMessage({ type: 'done', ...result }))
      port.postMessage({ type: 'ready' })
    }
  })
}

if (!isMainThread && workerData?.benchPort !== undefined) serve(workerData.benchPort)
