// What wins end to end in the C++ ring, writer and reader together: stores, prefetching, and how much
// memory is cycled. Decides what native/ does; it promises nothing.
import { barChart } from '../lib/bar-chart.mjs'
import { buildNative } from '../lib/build.mjs'
import { pairedRatio, summary } from '../lib/stats.mjs'
import { inTurns } from '../lib/turns.mjs'
import { nativeThroughput } from './native-bench.mjs'
import { burstBytes, PROMISED_BYTES, sizeName } from './sizes.mjs'

const BASE = 'memcpy'

const MIB = 1024 * 1024

/** Writer's copy, reader's loop, bytes of the ring. */
const KERNELS = [
  [BASE, 'memcpy', 'plain'],
  ['non-temporal stores, 32 bytes', 'stream', 'plain'],
  ['non-temporal stores, 64 bytes', 'stream512', 'plain'],
  ['prefetch of source and target', 'prefetch', 'plain'],
  ['memcpy, then cache line demote', 'demote', 'plain'],
  ['rep movsb', 'movsb', 'plain'],
  ['memcpy, reader prefetches 512 B ahead', 'memcpy', 'ahead512'],
  ['memcpy, reader prefetches 2 KiB ahead', 'memcpy', 'ahead2k'],
  ['non-temporal, reader prefetches 2 KiB', 'stream', 'ahead2k'],
  ['memcpy, ring of 64 MiB', 'memcpy', 'plain', 64 * MIB],
  ['memcpy, ring of 64 MiB, reader prefetches 2 KiB', 'memcpy', 'ahead2k', 64 * MIB],
  ['non-temporal, ring of 64 MiB, reader prefetches 2 KiB', 'stream', 'ahead2k', 64 * MIB],
  ['memcpy, ring of 4 MiB', 'memcpy', 'plain', 4 * MIB],
  ['memcpy, ring of 4 MiB, reader prefetches 2 KiB', 'memcpy', 'ahead2k', 4 * MIB],
  ['non-temporal, ring of 4 MiB, reader prefetches 2 KiB', 'stream', 'ahead2k', 4 * MIB],
]

const METHOD = [
  'The C++ ring, 16 MiB unless said otherwise, on 2 MiB pages, writer and reader in two processes, 64 MiB of source cycled; all kernels in turns within each round. The reader adds up all words, and each burst fails if the sum is wrong.',
  'A ring takes records up to an eighth of its size, so the small ones have no figure for large records.',
  'A ratio is the median over rounds of the ratio to memcpy in the same round; in brackets the 10th and the 90th percentile.',
]

/** @param {{ quick: boolean, say: (line: string) => void }} options */
export async function compare({ quick, say }) {
  buildNative()
  const results = new Map()
  for (const size of PROMISED_BYTES) {
    const contestants = KERNELS.map(([name, copy, sum, ringBytes]) => ({
      key: name,
      run: () =>
        nativeThroughput({
          contestant: 'ring',
          pages: 'huge',
          recordBytes: size,
          totalBytes: 2 * burstBytes(size, quick),
          copy,
          sum,
          ringBytes,
        }),
    }))
    const line = (text) => say(`${sizeName(size)}, ${text}`)
    results.set(size, await inTurns(contestants, quick ? 3 : 9, line))
  }
  return {
    title: 'Stores, prefetching and size of the ring, end to end',
    method: METHOD,
    promises: [],
    tables: [table(results)],
    charts: [chart(results)],
    data: Object.fromEntries(
      [...results].map(([size, found]) => [size, Object.fromEntries(found)]),
    ),
  }
}

function table(results) {
  return {
    title: 'Throughput, GB/s, and the ratio to memcpy',
    head: ['', ...PROMISED_BYTES.flatMap((size) => [sizeName(size), 'ratio'])],
    rows: KERNELS.map(([name]) => [
      name,
      ...PROMISED_BYTES.flatMap((size) => {
        const found = results.get(size)
        if (Number.isNaN(found.get(name)[0])) return ['-', '-']
        const ratio = pairedRatio(found.get(name), found.get(BASE))
        const spread = `${ratio.p10.toFixed(2)}-${ratio.p90.toFixed(2)}`
        return [
          summary(found.get(name)).median.toFixed(2),
          `${ratio.median.toFixed(2)} (${spread})`,
        ]
      }),
    ]),
  }
}

function chart(results) {
  const title = 'Copies and reads in the ring'
  return {
    file: 'ring-kernels.svg',
    alt: title,
    svg: barChart({
      title,
      unit: 'GB/s',
      groups: PROMISED_BYTES.map(sizeName),
      series: KERNELS.map(([name]) => name),
      bars: PROMISED_BYTES.map((size) =>
        KERNELS.map(([name]) => summary(results.get(size).get(name))),
      ),
    }),
  }
}
