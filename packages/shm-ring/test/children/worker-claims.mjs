// Writes into a ring of the process. workerData: { handle, mode, writer, records }
//   write  commits `records` records, each filled with what it says, waiting for space
//   hold   claims without end and settles at random; says so once, for terminate() in the middle
import { parentPort, workerData } from 'node:worker_threads'
import { RingWriter } from '../../dist/index.js'

const { handle, mode, writer, records } = workerData
const ring = RingWriter.open(handle)

function fill(claim, sequence) {
  const words = new Uint32Array(ring.memory, claim.byteOffset, claim.byteLength / 4)
  words.fill(sequence)
  words[0] = writer
}

if (mode === 'write') {
  for (let sequence = 1; sequence <= records; sequence++) {
    const byteLength = 4 * (2 + ((sequence * 7919 + writer) % 20_000))
    const claim = await ring.claimAsync(byteLength)
    fill(claim, sequence)
    claim.commit(sequence)
  }
  ring.close()
  parentPort.postMessage('done')
} else {
  const open = []
  parentPort.postMessage('busy')
  for (let sequence = 1; ; sequence++) {
    const claim = ring.claim(4 * (2 + (sequence % 2000)))
    if (claim) {
      fill(claim, sequence)
      open.push(claim)
    }
    if (claim && open.length < 4) continue
    const settled = open.splice(sequence % open.length, 1)[0]
    if (sequence % 3 === 0) settled?.abort()
    else settled?.commit(sequence)
  }
}
