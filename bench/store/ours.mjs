// Our store, with all that the broker has of it: ids looked up, counts kept, blocks by shape.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../packages/broker/dist/storage/open.js'
import {
  groupsOf,
  ITEM_TOKENS,
  idOf,
  RESULT_BYTES,
  timeGroups,
  tokensOf,
  WARM_ITEMS,
} from './items.mjs'

const encoder = new TextEncoder()
const SHAPE = { model: 1, paddedLength: ITEM_TOKENS }
/** Settlements under way at once, as with several consumers. */
const SETTLING = 4

function groupOf({ first, count }) {
  const tokens = new Int32Array(count * ITEM_TOKENS)
  const numbers = Array.from({ length: count }, (_, i) => first + i)
  numbers.forEach((number, i) => {
    tokens.set(tokensOf(number), i * ITEM_TOKENS)
  })
  const ids = encoder.encode(numbers.map(idOf).join(''))
  const idBytes = ids.byteLength / count
  return {
    job: 1,
    sequences: Float64Array.from(numbers),
    acceptedAtMs: 0,
    block: {
      job: 1,
      count,
      model: new Int32Array(count).fill(1),
      lengths: new Int32Array(count).fill(ITEM_TOKENS),
      tokens,
      ids,
      idEnds: Uint32Array.from(numbers, (_, i) => (i + 1) * idBytes),
      payloads: null,
      payloadEnds: null,
    },
  }
}

/** @param {{ folder: string, items: number, group: number, sync: 'always' | 'relaxed' }} run */
export async function ours({ folder, items, group, sync }) {
  const dataDir = mkdtempSync(join(folder, 'ours-'))
  const store = await openStore(dataDir, { sync })
  await store.createJob({
    number: 1,
    id: 'job',
    model: 1,
    createdAtMs: 0,
    state: 'open',
    paused: false,
    endedAtMs: null,
  })
  const append = async (each) => {
    const codes = await store.append(each)
    if (codes.some((code) => code !== 0)) throw new Error('a new item was not accepted')
  }
  await timeGroups(groupsOf(1, WARM_ITEMS, group).map(groupOf), append)
  await pack(store, group)
  const groups = groupsOf(WARM_ITEMS + 1, items, group).map(groupOf)
  const acceptSeconds = await timeGroups(groups, append)
  const packed =
    sync === 'always' ? await pack(store, group) : { settled: items, seconds: Number.NaN }
  if (packed.settled !== items) throw new Error(`${packed.settled} of ${items} were settled`)
  await store.close()
  rmSync(dataDir, { recursive: true })
  return { accept: items / acceptSeconds, pack: items / packed.seconds }
}

/** @param batch items of each */
async function pack(store, batch) {
  const value = new Uint8Array(RESULT_BYTES)
  const start = process.hrtime.bigint()
  let settled = 0
  const settling = new Set()
  for (;;) {
    const read = await store.read(1, SHAPE, batch * ITEM_TOKENS, 2 ** 23)
    if (read === null) break
    const { block, sequences } = read
    const items = Array.from(sequences, (sequence, i) => ({
      job: 1,
      sequence,
      shape: SHAPE,
      record: {
        status: 'completed',
        attempts: 1,
        truncatedTo: 0,
        encoding: 1,
        id: block.ids.subarray(i === 0 ? 0 : block.idEnds[i - 1], block.idEnds[i]),
        value,
      },
    }))
    const answer = store.settle(items)
    read.release?.()
    const done = answer.then((answers) => {
      settled += answers.reduce((sum, answer) => sum + answer, 0)
      settling.delete(done)
    })
    settling.add(done)
    if (settling.size >= SETTLING) await Promise.race(settling)
  }
  await Promise.all(settling)
  return { settled, seconds: Number(process.hrtime.bigint() - start) / 1e9 }
}
