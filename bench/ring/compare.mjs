// The ring against what else moves bytes from one Node process to another.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { barChart } from '../lib/bar-chart.mjs'
import { buildNative } from '../lib/build.mjs'
import { atLeast, atMost } from '../lib/promises.mjs'
import { pairedRatio, summary } from '../lib/stats.mjs'
import {
  LOOP_EACH,
  LOOP_ONE,
  MEMCPY,
  PIPE_EACH,
  RING,
  SPIN_EACH,
  UNIX,
  UNIX_EACH,
  UNIX_ONE,
  ZEROMQ,
} from './names.mjs'
import { PROMISED_BYTES, RECORD_BYTES, sizeName } from './sizes.mjs'

const METHOD = [
  'All contestants run in turns: one burst each per round and size, every round beginning with another one. Figures are medians over rounds; in brackets the 10th and the 90th percentile. Promises compare medians of the ratio within each round.',
  'The clock starts before the first write and stops when the reader has read the last 64-bit word. Both sides take it from CLOCK_MONOTONIC. The reader adds all words up by one native loop, the same for everyone, which asks for its bytes 2 KiB ahead, and each burst fails if the sum is wrong.',
  'The source is 64 MiB on transparent 2 MiB pages for everyone, cycled, and read once before the clock starts. The ring is 16 MiB, what the broker gives a consumer with such records, and, in Node, written by the native gather of the broker and read through onReadable(), next(), release().',
  '"memcpy, two processes" is the least that hands the same bytes over: a native process copies record after record into 16 MiB on the same pages, another one reads every word, and two counters keep them apart: no header, no check, no wake-up, no JavaScript. The promise is held against it. "memcpy, not read" is one thread that only copies, and "memcpy, read back" one that also reads.',
  'The sides of the ring and of the memcpy have a core each; "by the scheduler" shows the ring without that. Sockets, ZeroMQ and MessageChannel are left to the scheduler, which is the best for them: a socket whose sides have a core each sleeps so often that it is three times as slow here.',
  "Sockets: the kernel copies straight into one buffer per record (net's onread), write buffers of 4 MiB. ZeroMQ: PUSH and PULL, sent without a copy. MessageChannel: 64 MiB of buffers that go back and forth, never allocated anew.",
  'Latency: 64 bytes, one message at a time; one way from just before commit() or write() until the callback has the message. Both sides are pinned, to one core or to a core each; where neither is said, the scheduler decides. On one core a wake-up is a change of process. On another core it is an interrupt to a core that has gone idle, which on a virtual machine is most of the time of every contestant that sleeps, as the bare pipe in C++ shows. With a core each the reader of the ring has mostly not gone to sleep yet when the next message comes, for it looks on for 50 us; messages farther apart cost a wake-up, about 0.9 of that of a Unix socket. So the promise is held on one core, where each message finds a sleeper. A spinning worker needs a core to itself, and is compared with a socket that has the same.',
  'Several writers: the API in JavaScript has one writer, so these are C++ threads on the C++ ring.',
]

/** @param {{ quick: boolean, say: (line: string) => void }} options */
export async function compare({ quick, say }) {
  buildNative()
  const { nodeThroughput, nativeRing } = await import('./throughput.mjs')
  const { latency } = await import('./latency.mjs')
  const folder = mkdtempSync(join(tmpdir(), 'fabric-bench-'))
  const rounds = quick ? 3 : 11
  try {
    const node = await nodeThroughput({ folder, pages: 'huge', rounds, quick, say })
    const native = await nativeRing({ rounds: quick ? 3 : 9, quick, say })
    const waits = await latency({ folder, rounds: quick ? 3 : 9, pings: quick ? 1000 : 2000, say })
    return result(node, native, waits)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function result(node, native, waits) {
  return {
    title: 'The ring against memcpy, sockets, ZeroMQ and MessageChannel',
    method: METHOD,
    promises: promises(node, waits),
    tables: [
      contextTable(node, waits),
      throughputTable('Throughput in Node, GB/s', node),
      throughputTable('Throughput of the C++ ring, GB/s', native),
      latencyTable(waits),
    ],
    charts: [
      throughputChart('ring.svg', 'Writer to reader, two processes', node),
      throughputChart('ring-native.svg', 'C++ ring, kinds of pages', native),
      latencyChart(waits),
    ],
    data: { node: plainData(node), native: plainData(native), latency: Object.fromEntries(waits) },
  }
}

const oneWay = (waits, name) => waits.get(name).map((round) => round.oneWayUs.median)

/** What the promises can be judged by: how far any hand-over could come on this machine. */
function contextTable(node, waits) {
  const rows = PROMISED_BYTES.map((size) => [
    `${MEMCPY} over ${UNIX}, ${sizeName(size)}`,
    pairedRatio(node.get(MEMCPY).get(size), node.get(UNIX).get(size)),
  ])
  for (const [name, peer] of [
    [LOOP_EACH, UNIX_EACH],
    [PIPE_EACH, UNIX_EACH],
  ]) {
    const ratio = pairedRatio(oneWay(waits, name), oneWay(waits, peer))
    rows.push([`one way, ${name} over ${peer}`, ratio])
  }
  return {
    title: 'Not promised: what the machine allows',
    head: ['ratio', 'measured'],
    rows: rows.map(([what, ratio]) => [what, figure(ratio, 2)]),
  }
}

function promises(node, waits) {
  const checked = []
  for (const [peer, bound] of [
    [MEMCPY, 0.8],
    [UNIX, 5],
    [ZEROMQ, 3],
  ]) {
    for (const size of PROMISED_BYTES) {
      const ratio = pairedRatio(node.get(RING).get(size), node.get(peer).get(size)).median
      checked.push(atLeast(`ring over ${peer}, ${sizeName(size)}`, ratio, bound))
    }
  }
  for (const [name, peer, bound] of [
    [LOOP_ONE, UNIX_ONE, 0.6],
    [SPIN_EACH, UNIX_EACH, 0.15],
  ]) {
    const ratio = pairedRatio(oneWay(waits, name), oneWay(waits, peer)).median
    checked.push(atMost(`one way, ${name} over ${peer}`, ratio, bound))
  }
  return checked
}

const figure = ({ median, p10, p90 }, digits) =>
  `${median.toFixed(digits)} (${p10.toFixed(digits)}-${p90.toFixed(digits)})`

function throughputTable(title, results) {
  return {
    title,
    head: ['', ...RECORD_BYTES.map(sizeName)],
    rows: [...results].map(([name, bySize]) => [
      name,
      ...RECORD_BYTES.map((size) => figure(summary(bySize.get(size)), 2)),
    ]),
  }
}

function latencyTable(waits) {
  const over = (rounds, leg, part) => summary(rounds.map((round) => round[leg][part]))
  return {
    title: 'Latency, microseconds',
    head: ['', 'one way, median', 'one way, p99', 'round trip, median', 'round trip, p99'],
    rows: [...waits].map(([name, rounds]) => [
      name,
      figure(over(rounds, 'oneWayUs', 'median'), 1),
      figure(over(rounds, 'oneWayUs', 'p99'), 1),
      figure(over(rounds, 'roundTripUs', 'median'), 1),
      figure(over(rounds, 'roundTripUs', 'p99'), 1),
    ]),
  }
}

function throughputChart(file, title, results) {
  const series = [...results.keys()]
  const bars = RECORD_BYTES.map((size) =>
    series.map((name) => summary(results.get(name).get(size))),
  )
  return {
    file,
    alt: title,
    svg: barChart({ title, unit: 'GB/s', groups: RECORD_BYTES.map(sizeName), series, bars }),
  }
}

function latencyChart(waits) {
  const series = [...waits.keys()]
  const bars = ['oneWayUs', 'roundTripUs'].map((leg) =>
    series.map((name) => summary(waits.get(name).map((round) => round[leg].median))),
  )
  const groups = ['one way', 'round trip']
  const title = 'Latency of 64 bytes'
  return {
    file: 'ring-latency.svg',
    alt: title,
    svg: barChart({ title, unit: 'microseconds', groups, series, bars }),
  }
}

const plainData = (results) =>
  Object.fromEntries([...results].map(([name, bySize]) => [name, Object.fromEntries(bySize)]))
