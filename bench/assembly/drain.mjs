// Empties the ring of the assembly comparison, outside of what is timed.
import { Worker } from 'node:worker_threads'
import { offerRing } from '../lib/ring-handshake.mjs'

export const IDLE = 0
export const REQUESTED = 1

/** @returns {Promise<() => void>} drains and returns when the ring is empty */
export async function openDrain(writer, path) {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  flag[0] = REQUESTED
  const { taken } = await offerRing(path, writer)
  const worker = new Worker(new URL('drain-worker.mjs', import.meta.url), {
    workerData: { path, flag },
  })
  worker.unref()
  await taken
  return () => {
    Atomics.store(flag, 0, REQUESTED)
    Atomics.notify(flag, 0)
    Atomics.wait(flag, 0, REQUESTED)
  }
}
