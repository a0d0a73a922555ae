// A backlog far larger than memory: the broker is killed, the page cache dropped, the broker started
// again. How soon is the first batch there, how full are the first hundred, how much memory does it take?
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Consumer } from '../../packages/consumer/dist/index.js'
import { atLeast, atMost } from '../lib/promises.mjs'
import { Broker, memoryGroup } from './broker.mjs'
import { fill, lengthsOf } from './fill.mjs'

const CONTRACT = { batchSize: 2048, tokens: 16_384, inputLength: 1024, model: 1 }
const BATCHES = 100
const GROUP_BYTES = 2 * 2 ** 30
const GiB = 2 ** 30
/** Of an item of 1 KiB, with its id and what the tree takes. */
const DISK_BYTES_PER_ITEM = 1300

/** @param {{ quick: boolean, items?: number, say: (line: string) => void }} options */
export async function compare({ quick, items: wanted, say }) {
  const folder = mkdtempSync(join(tmpdir(), 'fabric-bench-backlog-'))
  const group = memoryGroup(GROUP_BYTES)
  try {
    const items = fitting(folder, wanted ?? (quick ? 200_000 : 5_000_000), say)
    const lengths = lengthsOf(items, CONTRACT.inputLength)
    const dataDir = join(folder, 'data')
    say(`${items} items go to disk`)
    const fillSeconds = await fill(dataDir, lengths)
    const socket = join(folder, 'b.sock')
    const first = new Broker(dataDir, socket, group)
    await first.listening
    await first.kill()
    const isDropped = dropCache()
    say(
      `killed; page cache ${isDropped ? 'dropped' : 'kept: only root may drop it'}; started again`,
    )
    const found = await firstBatches(new Broker(dataDir, socket, group))
    return result({ items, fillSeconds, isDropped, group, sorted: sortedFill(lengths), ...found })
  } finally {
    rmSync(folder, { recursive: true, force: true })
    group?.remove()
  }
}

function fitting(folder, wanted, say) {
  const { bavail, bsize } = statfsSync(folder)
  const room = Math.floor((bavail * bsize * 0.8) / DISK_BYTES_PER_ITEM)
  if (room < wanted) say(`room for ${room} items, not for ${wanted}`)
  return Math.min(room, wanted)
}

function dropCache() {
  try {
    writeFileSync('/proc/sys/vm/drop_caches', '3')
    return true
  } catch {
    return false
  }
}

async function firstBatches(broker) {
  const listeningMs = await broker.listening
  const state = await broker.state()
  const connectedAt = performance.now()
  const seen = { batches: 0, firstAt: 0 }
  const consumer = new Consumer({ broker: `unix:${state.socketPath}`, ...CONTRACT })
  const stop = new AbortController()
  let done = () => {}
  const enough = new Promise((resolve) => {
    done = resolve
  })
  const fills = []
  const running = consumer.run(
    async (batch) => {
      if (seen.batches === 0) seen.firstAt = performance.now()
      seen.batches += 1
      if (fills.length < BATCHES) fills.push(batch.tokenCount / CONTRACT.tokens)
      if (seen.batches === BATCHES) done()
      return Array.from(batch.lengths, (length) => ({ length }))
    },
    { signal: stop.signal },
  )
  running.catch(() => {})
  await Promise.race([enough, running])
  const { memoryBytes, startedAt } = broker
  stop.abort()
  await broker.kill()
  await Promise.race([running.catch(() => {}), new Promise((resolve) => setTimeout(resolve, 1000))])
  return {
    listeningMs,
    connectToBatchMs: seen.firstAt - connectedAt,
    startToBatchMs: seen.firstAt - startedAt,
    fills: fills.sort((a, b) => a - b),
    memoryBytes,
  }
}

/** Longest first, packed greedily under the same contract: the practical optimum. */
function sortedFill(lengths) {
  const fills = []
  let tokens = 0
  let count = 0
  for (const length of lengths.slice().sort().reverse()) {
    if (tokens + length > CONTRACT.tokens || count === CONTRACT.batchSize) {
      fills.push(tokens / CONTRACT.tokens)
      tokens = 0
      count = 0
    }
    tokens += length
    count += 1
  }
  return fills.sort((a, b) => a - b)
}

const quantile = (sorted, share) => sorted[Math.floor(share * (sorted.length - 1))]

function result({ items, fillSeconds, isDropped, group, sorted, ...found }) {
  const { listeningMs, connectToBatchMs, startToBatchMs, fills, memoryBytes } = found
  const [p50, p1] = [quantile(fills, 0.5), quantile(fills, 0.01)]
  const [sortP50, sortP1] = [quantile(sorted, 0.5), quantile(sorted, 0.01)]
  const promises = [
    atMost('first batch after the connect, s', connectToBatchMs / 1000, 1),
    atMost('first batch after the broker’s start, s', startToBatchMs / 1000, 3),
    atLeast('fill p50 of the first 100 batches', p50, 0.98),
    atLeast('fill p50, less that of sort', p50 - sortP50, -0.005),
    atLeast('fill p1, less that of sort', p1 - sortP1, -0.02),
    atMost('RssAnon + RssShmem, GiB', memoryBytes / GiB, 1),
  ]
  const seconds = (ms) => (ms / 1000).toFixed(2)
  return {
    title: 'A backlog on disk',
    method: [
      `${items} items of 256 tokens (1 KiB) on average, log-normal, at most ${CONTRACT.inputLength}, in one job; put there through the store with relaxed sync in ${fillSeconds.toFixed(0)} s.`,
      'The broker is started, killed by SIGKILL and started again; then one consumer in the process of this bench connects and answers at once.',
      isDropped
        ? 'The page cache is dropped before the second start.'
        : 'The page cache was not dropped: only root may.',
      group === null
        ? 'No memory group could be made: the broker had the machine’s memory.'
        : 'The broker runs in a control group with 2 GiB of memory, page cache included.',
      'Memory is the greatest RssAnon + RssShmem of the broker, every 50 ms from its start to the 100th batch.',
    ],
    promises,
    tables: [
      {
        title: 'From the start on',
        head: ['', ''],
        rows: [
          ['start to listening, s', seconds(listeningMs)],
          ['start to first batch, s', seconds(startToBatchMs)],
          ['connect to first batch, s', seconds(connectToBatchMs)],
          ['fill p50, p1', `${p50.toFixed(4)}, ${p1.toFixed(4)}`],
          ['sort p50, p1', `${sortP50.toFixed(4)}, ${sortP1.toFixed(4)}`],
          ['RssAnon + RssShmem, MiB', (memoryBytes / 2 ** 20).toFixed(0)],
        ],
      },
    ],
    charts: [],
    data: { items, fillSeconds, isDropped, hasGroup: group !== null, ...found },
  }
}
