// Each item's result says its length and the sum of its tokens, so a result that is another item's is
// found. It costs nothing, unless its plant has a throttle (throttle.ts): then each batch takes a while,
// as on a GPU, notes its items when it is done, and waits for more to be allowed.
import { appendFileSync, statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

const LOOK_EVERY_MS = 4

const lengthsAndSums = (batch) =>
  Array.from(batch.lengths, (length, row) => {
    const from = row * batch.paddedLength
    let sum = 0
    for (let i = 0; i < length; i++) sum += batch.inputIds[from + i]
    return { length, sum }
  })

async function throttled(batch, { done, allowed, recordBytes, batchMs }) {
  while (statSync(done).size >= statSync(allowed).size) await setTimeout(LOOK_EVERY_MS)
  await setTimeout(batchMs)
  const results = lengthsAndSums(batch)
  // One write, so that the records of three processes are whole.
  appendFileSync(done, batch.itemIds.map((id) => `${id.padEnd(recordBytes - 1)}\n`).join(''))
  return results
}

export function createRuntime() {
  const throttle = JSON.parse(process.env.FABRIC_PLANT_THROTTLE ?? 'null')
  return {
    description: 'lengths and sums',
    layout: 'padded',
    run: async (batch) => (throttle === null ? lengthsAndSums(batch) : throttled(batch, throttle)),
    async close() {},
  }
}
