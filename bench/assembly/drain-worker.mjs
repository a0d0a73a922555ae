// Releases what lies in the ring, when told to, on a thread of its own: the garbage of a reader must
// not be collected in the writer's time. Touches headers only, so the payload stays cold.
import { workerData } from 'node:worker_threads'
import { attachRing } from '../lib/ring-handshake.mjs'
import { IDLE, REQUESTED } from './drain.mjs'

const { path, flag } = workerData
const reader = await attachRing(path)
for (;;) {
  for (let record = reader.next(); record !== null; record = reader.next()) record.release()
  Atomics.store(flag, 0, IDLE)
  Atomics.notify(flag, 0)
  Atomics.wait(flag, 0, IDLE)
  if (Atomics.load(flag, 0) !== REQUESTED) break
}
