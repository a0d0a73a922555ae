// The ring again, read by a worker thread that spins on next() instead of waiting in the loop. Only
// the way there is measured; the echo returns through the loop.
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { openLink as openLoopLink, openRingPair } from './ring.mjs'

async function spin(endpoint) {
  const { reader, send } = await openRingPair('pong', endpoint)
  for (;;) {
    const record = reader.next()
    if (record === null) continue
    const receivedNs = process.hrtime.bigint()
    const [sentNs] = new BigUint64Array(record.payload, 0, 2)
    record.release()
    send(receivedNs - sentNs)
  }
}

export async function openLink(side, endpoint, onMessage) {
  if (side === 'ping') return openLoopLink(side, endpoint, onMessage)
  new Worker(new URL(import.meta.url), { workerData: { spinAt: endpoint } })
  return { send: () => {} }
}

if (!isMainThread && workerData?.spinAt !== undefined) await spin(workerData.spinAt)
