// Appends items and settles them in a loop until it is killed, or exits with 7 after EXIT_AFTER_MS: DIR BYTES,
// of a segment of the log. One line to its output for each thing that was acknowledged: `a FIRST COUNT` for
// sequences that are kept, `s SEQUENCE...` for settled ones; a full stop ends each. What an earlier life left is
// settled first.
import { openStore } from '../../../dist/storage/open.js'

const [, , dataDir, segmentBytesMax] = process.argv
const { EXIT_AFTER_MS } = process.env
const encoder = new TextEncoder()
// So slow a disk that there is a transaction under way whenever it exits.
const faults = EXIT_AFTER_MS === undefined ? null : new Int32Array(new SharedArrayBuffer(8))
faults?.set([0, 100])
const store = await openStore(dataDir, { segmentBytesMax: Number(segmentBytesMax), faults })
if (store.recovery.jobs.length === 0)
  await store.createJob({
    number: 1,
    id: 'job',
    model: 1,
    createdAtMs: 0,
    state: 'open',
    paused: false,
    endedAtMs: null,
  })
let sequence = store.recovery.lastSequence

function block(count) {
  const ids = Array.from({ length: count }, (_, i) => encoder.encode(`item-${sequence + i + 1}`))
  const lengths = Int32Array.from({ length: count }, (_, i) => 1 + ((sequence + i) % 24))
  let end = 0
  return {
    job: 1,
    count,
    model: new Int32Array(count).fill(1),
    lengths,
    tokens: new Int32Array(lengths.reduce((sum, length) => sum + length, 0)).fill(9),
    ids: Uint8Array.from(ids.flatMap((id) => [...id])),
    idEnds: Uint32Array.from(ids, (id) => (end += id.length)),
    payloads: null,
    payloadEnds: null,
  }
}

async function append() {
  for (let round = 0; ; round++) {
    const count = 1 + (round % 40)
    const first = sequence + 1
    const items = block(count)
    sequence += count
    const sequences = Float64Array.from({ length: count }, (_, i) => first + i)
    await store.append({ job: 1, block: items, sequences, acceptedAtMs: 0 })
    process.stdout.write(`a ${first} ${count} .\n`)
  }
}

async function settle() {
  for (;;) {
    let isIdle = true
    for (const paddedLength of [8, 16, 24]) {
      const read = await store.read(1, { model: 1, paddedLength }, 200, 1 << 20)
      if (read === null) continue
      isIdle = false
      const items = Array.from(read.sequences, (one) => ({
        job: 1,
        sequence: one,
        shape: read.shape,
        record: {
          status: 'completed',
          attempts: 1,
          truncatedTo: 0,
          encoding: 0,
          id: encoder.encode(`item-${one}`),
          value: encoder.encode(String(one)),
        },
      }))
      await store.settle(items)
      process.stdout.write(`s ${items.map((one) => one.sequence).join(' ')} .\n`)
    }
    if (isIdle) await new Promise((resolve) => setImmediate(resolve))
  }
}

if (EXIT_AFTER_MS !== undefined) setTimeout(() => process.exit(7), Number(EXIT_AFTER_MS))
await Promise.all([append(), append(), settle()])
