// What a queued item costs in memory: filled to each size in turn, then emptied. Run with --expose-gc.
import { SteadyQueue } from './steady.mjs'

const DAY_NS = 86_400e9

const sizes = JSON.parse(process.argv[2])
const queue = new SteadyQueue({ lanes: 1, consumers: 2, batchSize: 1024, withTokens: true })

async function measured(items) {
  // Twice, with time between: buffers are given back by a thread of V8's after the collection.
  for (let i = 0; i < 2; i++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { items, rss, heapAndExternal: heapUsed + external }
}

/** The ids of what has ended are known for resultsTtl, in two generations. */
function forget() {
  for (let twice = 0; twice < 2; twice++) queue.passTime(2 * DAY_NS)
}

// A process that has just begun is no measure: the code is compiled, and the heap has grown to what its
// garbage takes, when it has had two bursts of the size before the last.
for (let twice = 0; twice < 2; twice++) {
  queue.fill(sizes.at(-2))
  queue.empty()
  forget()
}
const start = await measured(0)
const filled = []
let tokens = 0
for (const items of sizes) {
  queue.fill(items - (filled.at(-1)?.items ?? 0))
  tokens = queue.core.counts().waiting.tokens
  filled.push({ ...(await measured(items)), tokens })
}
queue.empty()
const emptied = await measured(0)
forget()
const forgotten = await measured(0)
process.send({ start, filled, emptied, forgotten })
