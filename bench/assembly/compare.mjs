// The broker's assembly of a batch, from its item table into a ring, against one memcpy of as many
// bytes from the same queue.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RingWriter } from '@fabric/shm-ring'
import { Assembler } from '../../packages/broker/dist/channels/assembly.js'
import { RingChannel } from '../../packages/broker/dist/channels/ring-channel.js'
import { barChart } from '../lib/bar-chart.mjs'
import { buildNative } from '../lib/build.mjs'
import { atMost } from '../lib/promises.mjs'
import { summary } from '../lib/stats.mjs'
import { openDrain } from './drain.mjs'
import * as queue from './queue.mjs'

const RING_BYTES = 64 * 1024 * 1024
/** The original's mean, in microseconds, on its own machine. */
const ORIGINAL_MEAN_US = 523
/** Two batches of 66 KiB each: half the ring. */
const TURNS_PER_DRAIN = 256

const METHOD = [
  '64 items of 256 tokens with ids of 16 bytes, drawn from a queue in the item table and arenas of the broker, are laid out by its Assembler in a channel over a 64 MiB ring: plan, header, lengths, gather, ids, claim and commit. One call is timed at a time.',
  'The memcpy moves the same number of token bytes in one piece, from a place in the same arenas that has not been touched for as long, into a second ring memory of 64 MiB on the same pages, cycled alike. It is called through the same kind of native call.',
  'In turns: one memcpy, one batch of the lane order, one batch of the scattered order, then again. A reader on another thread releases all records every 256 turns, outside of the timed part, and touches only headers.',
  'Lane order: sixteen lanes filled side by side, so the items of a batch lie sixteen apart. Scattered: every item of a batch comes from anywhere in the queue.',
  'Ratios are taken against the median of memcpy; p99 too.',
]

/** @param {{ quick: boolean, say: (line: string) => void }} options */
export async function compare({ quick, say }) {
  buildNative()
  const { kernels } = await import('../ring/source.mjs')
  const { items, view, slots } = queue.fillQueue()
  say(`queue of ${Math.round(items.arena.allocatedBytes() / 1024 ** 2)} MiB`)
  const { channel, drain } = await openChannel()
  const assembler = new Assembler(view, 1n)
  const contestants = new Map([
    [MEMCPY, contiguousCopy(kernels, items, slots)],
    ['assembly, lane order', assembly(assembler, channel, queue.laneOrder(slots))],
    ['assembly, scattered', assembly(assembler, channel, queue.scatteredOrder(slots))],
  ])
  const times = takeTurns(contestants, drain, quick ? 4000 : 60_000)
  return result(times, items.arena.allocatedBytes(), channel.ring().pages)
}

const MEMCPY = 'memcpy, contiguous'

async function openChannel() {
  const folder = mkdtempSync(join(tmpdir(), 'fabric-bench-'))
  const writer = RingWriter.create({ capacityBytes: RING_BYTES })
  const drain = await openDrain(writer, join(folder, 'ring'))
  rmSync(folder, { recursive: true, force: true })
  const fallback = { hasRoom: true, close: () => {} }
  const channel = new RingChannel(writer, fallback, () => {})
  return { channel, drain }
}

/** From places of one batch's length, each as far from the last as half the queue is long. */
function contiguousCopy(kernels, items, slots) {
  const target = RingWriter.create({ capacityBytes: RING_BYTES }).memory
  const bytes = queue.BATCH_TOKEN_BYTES
  const segments = [...new Set(Array.from(slots, (slot) => items.segment.get(slot)))]
    .map((row) => items.arena.segment(row))
    .filter((segment) => segment.usedBytes >= bytes)
  const placesPerSegment = Math.floor(segments[0].usedBytes / bytes)
  let turn = 0
  return () => {
    const segment = segments[(turn * 7) % segments.length]
    const from = (Math.floor(turn / segments.length) % placesPerSegment) * bytes
    const to = (turn * bytes) % RING_BYTES
    turn++
    const { buffer, byteOffset } = segment.bytes
    const source = byteOffset + Math.min(from, segment.usedBytes - bytes)
    kernels.copy(target, to, buffer, source, bytes)
  }
}

function assembly(assembler, channel, order) {
  let batch = 0
  return () => {
    const at = (batch * queue.BATCH_ITEMS) % order.length
    assembler.write(
      dispatch(++batch, order.subarray(at, at + queue.BATCH_ITEMS)),
      'padded',
      channel,
    )
  }
}

const dispatch = (batch, items) => ({
  type: 'dispatch',
  batch,
  consumer: 0,
  model: 0,
  items,
  size: queue.BATCH_ITEMS,
  paddedLength: queue.ITEM_TOKENS,
  actualTokens: queue.BATCH_ITEMS * queue.ITEM_TOKENS,
  attempt: 0,
})

/** @returns microseconds by contestant */
function takeTurns(contestants, drain, turns) {
  const warm = Math.min(2000, turns / 2)
  const times = new Map([...contestants.keys()].map((name) => [name, new Float64Array(turns)]))
  for (let turn = -warm; turn < turns; turn++) {
    for (const [name, run] of contestants) {
      const start = process.hrtime.bigint()
      run()
      const end = process.hrtime.bigint()
      if (turn >= 0) times.get(name)[turn] = Number(end - start) / 1000
    }
    if (turn % TURNS_PER_DRAIN === 0) drain()
  }
  return times
}

function result(times, allocatedBytes, pages) {
  const found = new Map([...times].map(([name, values]) => [name, summary(values)]))
  const reference = found.get(MEMCPY).median
  const ours = [...found].filter(([name]) => name !== MEMCPY)
  const size = `${Math.round(allocatedBytes / 1024 ** 2)} MiB`
  return {
    title: 'Assembly of a batch against one contiguous memcpy',
    method: [...METHOD, `Here the queue had ${size}, and the rings ${pages} pages.`],
    promises: ours.flatMap(([name, { median, p99 }]) => [
      atMost(`${name}, median over memcpy`, median / reference, 3),
      atMost(`${name}, p99 over memcpy's median`, p99 / reference, 10),
    ]),
    tables: [table(found, reference)],
    charts: [chart(found)],
    data: Object.fromEntries(found),
  }
}

function table(found, reference) {
  const row = (name, { median, p10, p90, p99, mean }) => [
    name,
    `${median.toFixed(1)} (${p10.toFixed(1)}-${p90.toFixed(1)})`,
    (median / reference).toFixed(2),
    p99.toFixed(1),
    mean.toFixed(1),
  ]
  return {
    title: 'Microseconds per batch of 64 x 256 tokens',
    note: `The original's mean was ${ORIGINAL_MEAN_US} us, on another machine.`,
    head: ['', 'median (p10-p90)', 'over memcpy', 'p99', 'mean'],
    rows: [...found].map(([name, values]) => row(name, values)),
  }
}

function chart(found) {
  const title = 'Assembly of 64 x 256 tokens'
  return {
    file: 'assembly.svg',
    alt: title,
    svg: barChart({
      title,
      unit: 'microseconds, p10 to p90',
      groups: ['median'],
      series: [...found.keys()],
      bars: [[...found.values()]],
    }),
  }
}
