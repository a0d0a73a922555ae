// The core alone at a steady queue: what leaves is replaced, so that a round costs what an item costs
// at that many queued items, lanes and consumers.
import { Core, RULE_OPTIONS } from '../../packages/core/dist/index.js'
import { seeded } from '../lib/random.mjs'

const LIFE = 1n
const BLOCK_ITEMS = 1000
const ID_BYTES = 8
const COMPLETED = 0

/** The options' own defaults, without limits on the queue. */
function config(over) {
  const rules = Object.fromEntries(
    Object.entries(RULE_OPTIONS).map(([name, { fallback }]) => [name, fallback]),
  )
  return {
    ...rules,
    maxQueuedItems: 2 ** 31 - 1,
    maxQueuedTokens: Number.MAX_SAFE_INTEGER,
    maxItemBytes: 2 ** 40,
    maxBatchBytes: 2 ** 40,
    releaseThreshold: 0,
    mode: 'memory',
    brokerLife: LIFE,
    hashSeed: 1,
    ...over,
  }
}

export class SteadyQueue {
  #now = 0
  #ids = 0
  /** Dispatched and not settled, oldest first. */
  #out = []
  #outAt = 0
  #random = seeded(1)

  /** @param {{ lanes: number, consumers: number, batchSize: number, withTokens: boolean }} shape */
  constructor({ lanes, consumers, batchSize, withTokens }) {
    this.lanes = lanes
    this.withTokens = withTokens
    const longest = lanes * 8
    this.core = new Core(config({ lengthsOnly: !withTokens }))
    this.tokens = Int32Array.from(
      { length: BLOCK_ITEMS * longest * (withTokens ? 1 : 0) },
      (_, i) => i,
    )
    this.#registered = consumers
    for (let consumer = 1; consumer <= consumers; consumer++) {
      this.#step({
        type: 'register',
        consumer,
        name: `gpu${consumer}`,
        contract: {
          batchSize,
          tokens: batchSize * longest,
          inputLength: longest,
          model: 1,
          layout: 'padded',
          roundTo: 8,
          maxInFlight: 1,
        },
      })
    }
    this.all = new Uint32Array(batchSize).map((_, i) => i)
    this.completed = new Uint8Array(batchSize).fill(COMPLETED)
  }
  #registered

  #step(event) {
    return this.core.step(event, this.#now)
  }

  /** Submits items of lengths drawn evenly over the lanes. */
  fill(count) {
    for (let left = count; left > 0; left -= BLOCK_ITEMS) this.#submit(Math.min(left, BLOCK_ITEMS))
  }

  #submit(count) {
    const lengths = new Int32Array(count)
    let total = 0
    for (let i = 0; i < count; i++) {
      lengths[i] = 1 + Math.floor(this.#random() * this.lanes * 8)
      total += lengths[i]
    }
    const ids = new Uint8Array(count * ID_BYTES)
    const view = new DataView(ids.buffer)
    const idEnds = new Uint32Array(count)
    for (let i = 0; i < count; i++) {
      view.setFloat64(i * ID_BYTES, ++this.#ids)
      idEnds[i] = (i + 1) * ID_BYTES
    }
    this.#step({
      type: 'submit',
      block: {
        job: 0,
        count,
        model: new Int32Array(count).fill(1),
        lengths,
        tokens: this.withTokens ? this.tokens.subarray(0, total) : this.tokens,
        ids,
        idEnds,
        payloads: null,
        payloadEnds: null,
      },
    })
  }

  /** Everything the engine asks of the core for so many items, which new ones replace. */
  turn(items) {
    let owed = 0
    for (let done = 0; done < items; ) {
      const settled = this.#serveOne()
      if (settled === 0) throw new Error('nothing is ready')
      done += settled
      owed += settled
      if (owed < BLOCK_ITEMS) continue
      this.#submit(BLOCK_ITEMS)
      owed -= BLOCK_ITEMS
    }
    if (owed > 0) this.#submit(owed)
  }

  /** Fills every channel, then lets the consumer that waits longest take and settle its batch. */
  #serveOne() {
    this.#now += 1000
    for (;;) {
      const effects = this.#step({ type: 'dispatch' })
      const sent = effects.find(({ type }) => type === 'dispatch')
      if (sent === undefined) break
      this.#out.push(sent)
    }
    if (this.#outAt === this.#out.length) return 0
    const oldest = this.#out[this.#outAt]
    // Not kept: what is remembered of a batch here must not count as the core's memory.
    this.#out[this.#outAt++] = null
    if (this.#outAt > 4096) {
      this.#out.splice(0, this.#outAt)
      this.#outAt = 0
    }
    const { consumer, batch, size } = oldest
    this.#step({ type: 'taken', consumer, batch })
    this.#step({
      type: 'results',
      consumer,
      brokerLife: LIFE,
      batch,
      index: this.all.subarray(0, size),
      outcome: this.completed.subarray(0, size),
    })
    return size
  }

  /** Ends the input and drains; then all but what ids cost is gone. */
  empty() {
    this.#step({ type: 'flush', job: null })
    while (this.#serveOne() > 0) {
      if (this.core.nextWorkAt() < Number.POSITIVE_INFINITY) this.#step({ type: 'tick' })
    }
    this.#step({ type: 'tick' })
  }

  /** So much later ids are forgotten, too (S36), and lanes end; consumers are told to be alive. */
  passTime(ns) {
    this.#now += ns
    for (let consumer = 1; consumer <= this.#registered; consumer++) {
      this.#step({ type: 'renew', consumer })
    }
    this.#step({ type: 'tick' })
  }
}
