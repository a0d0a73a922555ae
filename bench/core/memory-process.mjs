// What a queued item costs in memory: filled to each size in turn, then emptied. Run with --expose-gc.
import { SteadyQueue } from './steady.mjs'

const LONGEST = 8
const ID_BYTES = 8
const TOKEN_BYTES = 4

const sizes = JSON.parse(process.argv[2])
const queue = new SteadyQueue({ lanes: 1, consumers: 2, batchSize: 1024, withTokens: true })

function measured(items) {
  // Twice: what the first collection finalises is freed by the second.
  globalThis.gc()
  globalThis.gc()
  const { rss, heapUsed, external } = process.memoryUsage()
  return { items, rss, heapAndExternal: heapUsed + external }
}

const start = measured(0)
const filled = []
let tokens = 0
for (const items of sizes) {
  queue.fill(items - (filled.at(-1)?.items ?? 0))
  tokens = queue.core.counts().waiting.tokens
  filled.push({ ...measured(items), tokens })
}
queue.empty()
const emptied = measured(0)
// The ids of what has ended are known for resultsTtl, in two generations.
for (let day = 0; day < 4; day++) queue.passTime(86_400e9)
const forgotten = measured(0)
process.send({ start, filled, emptied, forgotten, ID_BYTES, TOKEN_BYTES, LONGEST })
