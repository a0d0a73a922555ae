import { expect, it } from 'vitest'
import { Bench } from './helpers.js'
import { Random } from './random.js'

// Tokens 64, batch size 8: a full count is 8 of length 8, 4 of 16, 2 of 24 and 32, 1 of 40 and more.
// A job that stays open keeps the end of input away, a bound far off keeps cleanup away.
const SPANS = { spanWaste: [0.01, 0.15, 0.3], cleanupIdleMs: 1_000_000 }

function lengthsOf(bench: Bench): number[] {
  return bench.sent.map((sent) => sent.effect.paddedLength)
}

it('S13a: the next shorter shapes complete a full count, longest first, in arrival order within each', () => {
  const bench = new Bench(SPANS)
  bench.register(1)
  bench.submit([8, 16, 16])
  expect(bench.sent).toEqual([])
  bench.submit([{ id: 'last', length: 16 }])
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i1', 'i2', 'last', 'i0']])
  expect(bench.sent[0].effect).toMatchObject({ normal: true, closedBy: 'token_limit', fill: 1 })
})

it('S13a: an item of a shorter length, come last, completes the span of a longer one', () => {
  const bench = new Bench(SPANS)
  bench.register(1)
  bench.submit([16, 16, 16])
  expect(bench.sent).toEqual([])
  bench.submit([8])
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i0', 'i1', 'i2', 'i3']])
})

it('S13a: longer shapes never complete a shorter one, and off means off', () => {
  const bench = new Bench({ ...SPANS, spanWaste: [0] })
  bench.register(1)
  bench.submit([8, 16, 16, 16])
  expect(bench.sent).toEqual([])
  const other = new Bench(SPANS)
  other.register(1)
  other.submit([8, 8, 8, 8, 8, 8, 8, 24])
  expect(other.sent).toEqual([])
})

it('S13b: the span widens with need: a batch in the channel, an empty one, nothing in flight', () => {
  const bench = new Bench(SPANS)
  bench.register(1)
  // 3 of 16 and 1 of 8 pad 12.5 %, 2 and 2 pad 25 %.
  const tenth = [16, 16, 16, 8]
  const quarter = [16, 16, 8, 8]
  bench.submit(quarter)
  expect(bench.sent).toHaveLength(1) // nothing is in flight
  bench.submit(tenth)
  expect(bench.sent).toHaveLength(1) // its channel holds a batch
  bench.taken(bench.sent[0])
  expect(bench.sent).toHaveLength(2) // its channel is empty
  bench.submit(quarter)
  bench.taken(bench.sent[1]) // ignored, one is in flight: the channel keeps its batch
  expect(bench.sent).toHaveLength(2)
})

it('S13b: a consumer that needs more is served where the first in line needs too little', () => {
  const bench = new Bench(SPANS)
  bench.register(1)
  bench.submit([40])
  bench.register(2)
  bench.submit([40])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([1, 2])
  bench.taken(bench.sent[1])
  // Both hold one batch and 1 has waited longer, but only the channel of 2 is empty.
  bench.submit([16, 16, 16, 8])
  expect(bench.sent.map((sent) => sent.consumer)).toEqual([1, 2, 2])
})

it('S13b: lanes that are full alone come first, then the span that pads least', () => {
  const bench = new Bench({ ...SPANS, spanWaste: [0.3], channelDepth: 3 })
  bench.submit([16, 16, 32, 24, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8])
  bench.register(1)
  expect(lengthsOf(bench)).toEqual([8, 32, 16])
})

it('S13b: of the spans that the need allows, one that has waited long goes before one that pads less', () => {
  const bench = new Bench({ ...SPANS, spanWaste: [0, 0.3] })
  bench.register(1)
  bench.submit(Array(12).fill(40)) // each a batch of its own, before any span
  bench.submit([16, 16, 16, 8])
  for (let done = 0; done < 10; done++) bench.complete(bench.sent[done])
  bench.submit([32, 24, 8])
  for (let done = 10; done < 12; done++) bench.complete(bench.sent[done])
  expect(lengthsOf(bench).slice(12)).toEqual([16])
  bench.complete(bench.sent[12])
  expect(lengthsOf(bench).slice(13)).toEqual([32])
})

it('S31: while more may come an idle consumer gets the full batch that pads least, not the longest', () => {
  const bench = new Bench({ ...SPANS, spanWaste: [0.01], cleanupIdleMs: 50 })
  bench.register(1)
  // 1 of 32 and 1 of 8 pad 37.5 %; 3 of 16 and 1 of 8 pad 12.5 %.
  bench.submit([32, 8, 16, 16, 16])
  bench.submit([8])
  expect(bench.sent).toEqual([])
  bench.advance(50)
  expect(lengthsOf(bench)[0]).toBe(16)
})

it('S13b: where the queue is at its limit and the producer waits, the least padded full count leaves', () => {
  const bench = new Bench({ ...SPANS, spanWaste: [0.01], maxQueuedItems: 8 })
  bench.register(1)
  bench.submit([32, 8, 8, 8, 8, 8, 8])
  expect(bench.sent).toEqual([])
  bench.submit([16])
  expect(bench.sent).toEqual([])
  bench.submit([8])
  expect(bench.sent.map((sent) => sent.ids)).toEqual([['i0', 'i7']])
  const off = new Bench({ ...SPANS, spanWaste: [0], maxQueuedItems: 8, gateOpensOn: 'any' })
  off.register(1)
  off.submit([32, 8, 8, 8, 8, 8, 8, 16, 8])
  expect(off.sent).toEqual([])
})

it('S13b: when the input has ended only a consumer with nothing to do gets a span: cleanup packs the rest', () => {
  const bench = new Bench(SPANS)
  bench.register(1)
  bench.submit([40, 16, 16, 16, 8, 8])
  bench.do({ type: 'flush', job: null })
  expect(bench.sent.map((sent) => sent.effect.cleanup)).toEqual([false])
  bench.taken(bench.sent[0])
  expect(bench.sent.map((sent) => sent.effect.cleanup)).toEqual([false, true])
})

it('S13a: with an activation threshold of the operator only lanes begin a span', () => {
  const bench = new Bench({ ...SPANS, activationThreshold: 3 })
  bench.register(1)
  bench.submit([16, 16, 8, 8])
  expect(bench.sent).toEqual([])
  bench.submit([16])
  expect(bench.sent).toHaveLength(1)
})

it('S7: a span that is ready for the most need lets the threshold open the gate', () => {
  const bench = new Bench({ ...SPANS, releaseThreshold: 48 })
  bench.register(1)
  bench.submit([16, 16, 8, 8])
  expect(bench.of('gate').map((effect) => effect.reason)).toEqual(['threshold'])
})

it('S14: spans cost an item about the same with 16 times the lanes', () => {
  // Counted in looks at a span, not in time: the same on every machine.
  const few = looksPerItem(512)
  const many = looksPerItem(8192)
  expect(many).toBeLessThan(few * 1.5)
  // A span covers 16 items, so a change of one reaches as many at most.
  expect(many).toBeLessThan(16)
})

/** Spans looked at per item, in a queue where no lane is ever full alone. */
function looksPerItem(lanes: number): number {
  const bench = new Bench({ roundTo: 1, spanWaste: [0.1], cleanupIdleMs: 1_000_000 })
  bench.register(1, { tokens: 16 * lanes, batchSize: 16, inputLength: lanes, roundTo: 1 })
  // biome-ignore lint/suspicious/noExplicitAny: counted inside
  const { spans } = (bench.core as any).state.models.get(1).classes[0]
  const { wasteOf } = Object.getPrototypeOf(spans)
  let looks = 0
  spans.wasteOf = (...args: unknown[]) => {
    looks++
    return wasteOf.apply(spans, args)
  }
  const random = new Random(1)
  const payload = new Uint8Array(1)
  let done = 0
  const rounds = 50
  for (let round = 0; round < rounds; round++) {
    const specs = Array.from({ length: 40 }, (_, i) => {
      return { id: `${round}/${i}`, length: random.int(1, lanes), payload }
    })
    bench.submit(specs)
    while (done < bench.sent.length) bench.complete(bench.sent[done++])
  }
  expect(bench.sent.length).toBeGreaterThan(rounds)
  return looks / (rounds * 40)
}
