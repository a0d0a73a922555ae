// A backlog on disk, put there through the store itself: how long acceptance takes is not asked here.
import { openStore } from '../../packages/broker/dist/storage/open.js'
import { seeded } from '../lib/random.mjs'
import { IN_FLIGHT, timeGroups } from '../store/items.mjs'

const GROUP = 1000
const encoder = new TextEncoder()

/** Log-normal lengths, 256 tokens (1 KiB) on average, none over `longest`. */
export function lengthsOf(items, longest) {
  const random = seeded(1)
  return Int32Array.from({ length: items }, () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    return Math.max(1, Math.min(longest, Math.round(Math.exp(5.36 + 0.65 * normal))))
  })
}

function groupOf(lengths, first) {
  const own = lengths.subarray(first, first + GROUP)
  const count = own.length
  const ids = encoder.encode(Array.from(own, (_, i) => idOf(first + i)).join(''))
  return {
    job: 1,
    sequences: Float64Array.from(own, (_, i) => first + i + 1),
    acceptedAtMs: 0,
    block: {
      job: 1,
      count,
      model: new Int32Array(count).fill(1),
      lengths: own.slice(),
      tokens: new Int32Array(own.reduce((sum, length) => sum + length, 0)).fill(first % 30_000),
      ids,
      idEnds: Uint32Array.from(own, (_, i) => ((i + 1) * ids.byteLength) / count),
      payloads: null,
      payloadEnds: null,
    },
  }
}

const idOf = (number) => `item-${String(number).padStart(10, '0')}`

/** @returns seconds */
export async function fill(dataDir, lengths) {
  const store = await openStore(dataDir, { sync: 'relaxed' })
  await store.createJob({
    number: 1,
    id: 'backlog',
    model: 1,
    weight: 1,
    createdAtMs: Date.now(),
    state: 'open',
    paused: false,
    endedAtMs: null,
  })
  const firsts = Array.from({ length: Math.ceil(lengths.length / GROUP) }, (_, i) => i * GROUP)
  const append = (first) => store.append(groupOf(lengths, first))
  const seconds = await timeGroups(firsts, append, IN_FLIGHT)
  await store.close()
  return seconds
}
