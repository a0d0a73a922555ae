// S27: poison, found by halves.

import { expect, it } from 'vitest'
import { RESULT_NACK, RESULT_RETRY } from '../src/events.js'
import { Bench, type Sent } from './helpers.js'

/** Consumer 1 holds i0 to i7 in a batch; nothing else waits. */
function withBatch(over = {}): Bench {
  const bench = new Bench({ cleanupIdleMs: 1e6, ...over })
  bench.register(1)
  bench.submit(Array(8).fill(8))
  return bench
}

/** Works on all that comes, one batch after another; whoever takes a poison item dies of it. */
function workOff(bench: Bench, poison: ReadonlySet<string>): number {
  let deaths = 0
  let nextConsumer = 100
  for (let done = 0; done < bench.sent.length; done++) {
    const sent = bench.sent[done]
    if (!bench.core.counts().consumers.some((one) => one.id === sent.consumer)) continue
    if (!sent.ids.some((id) => poison.has(id))) {
      bench.complete(sent)
      continue
    }
    bench.die(sent)
    deaths++
    bench.register(nextConsumer++)
  }
  return deaths
}

const groupOf = (sent: Sent) => sent.effect.group

it('S27: what a consumer had taken when it died goes out again as it was, alone', () => {
  const bench = withBatch()
  bench.submit(Array(4).fill(8))
  bench.die(bench.sent[0])
  bench.register(2)
  const [, again] = bench.sent
  expect(again.ids).toEqual(bench.sent[0].ids)
  expect(groupOf(again)).not.toBeNull()
  expect(again.effect).toMatchObject({ source: 'reclaimed', normal: false })
})

it('S27: a batch that stood in the channel behind the head is under no suspicion', () => {
  const bench = new Bench({ channelDepth: 3 })
  bench.register(1)
  bench.submit(Array(24).fill(8))
  bench.die(bench.sent[0])
  for (const consumer of [2, 3, 4]) bench.register(consumer)
  expect(bench.sent.slice(3).map((sent) => groupOf(sent) !== null)).toEqual([true, true, false])
})

it('S27: whoever works on a suspect group holds nothing else', () => {
  const bench = withBatch()
  bench.die(bench.sent[0])
  bench.register(2)
  bench.submit(Array(16).fill(8))
  expect(bench.sent.length).toBe(2)
  bench.complete(bench.sent[1])
  expect(bench.sent.slice(2).map((sent) => [sent.consumer, groupOf(sent)])).toEqual([
    [2, null],
    [2, null],
  ])
})

it('I8: what only a consumer of suspects is ready for does not keep an idle one waiting', () => {
  const bench = new Bench({ cleanupIdleMs: 50 })
  bench.register(1, { batchSize: 1 })
  bench.submit([8])
  bench.die(bench.sent[0])
  bench.register(2, { batchSize: 1 })
  bench.taken(bench.sent[1])
  // Full for consumer 2, which may not have it; half of what is full for consumer 3.
  bench.register(3, { batchSize: 2 })
  bench.submit([8])
  bench.advance(49)
  expect(bench.sent.length).toBe(2)
  bench.advance(1)
  expect(bench.sent[2]).toMatchObject({ consumer: 3, ids: ['i1'], effect: { cleanup: true } })
})

it('S27: under load a consumer is kept for the group, and the others go on', () => {
  const bench = withBatch()
  bench.register(2)
  bench.register(3)
  bench.submit(Array(80).fill(8))
  bench.die(bench.sent[0])
  const busy = bench.sent.filter((sent) => sent.consumer !== 1)
  expect(busy.length).toBe(4)
  // Each gives its first batch back: the first of them with a place is kept, the other goes on.
  bench.complete(busy[0])
  const before = bench.sent.length
  bench.complete(busy[1])
  expect(bench.sent.length).toBe(before + 1)
  expect(groupOf(bench.sent[before])).toBeNull()
  const rest = busy.slice(2).find((sent) => sent.consumer !== bench.sent[before].consumer)
  bench.complete(rest!)
  expect(bench.sent.at(-1)!.ids).toEqual(bench.sent[0].ids)
  expect(bench.sent.at(-1)!.consumer).toBe(rest!.consumer)
})

it('S27: a group that completes is cleared', () => {
  const bench = withBatch()
  bench.die(bench.sent[0])
  bench.register(2)
  bench.complete(bench.sent[1])
  expect(bench.settled.length).toBe(8)
  expect(bench.core.counts().groups).toEqual({ waiting: 0, items: 0 })
  bench.submit(Array(8).fill(8))
  bench.die(bench.sent[2])
  bench.register(3)
  expect(bench.sent[3].ids.length).toBe(8)
})

it('S27: an item that comes back by itself is under suspicion no more', () => {
  const bench = withBatch()
  bench.die(bench.sent[0])
  bench.register(2)
  bench.taken(bench.sent[1])
  bench.results(bench.sent[1], [RESULT_RETRY, RESULT_NACK, 0, 0, 0, 0, 0, 0])
  bench.advance(100)
  bench.submit(Array(6).fill(8))
  expect(bench.sent[2].ids.slice(-2)).toEqual(['i12', 'i13'])
  expect(groupOf(bench.sent[2])).toBeNull()
})

it('S27: at poisonDeaths it splits in halves, and a half at its first death', () => {
  const bench = withBatch()
  bench.die(bench.sent[0])
  bench.register(2)
  bench.die(bench.sent[1])
  bench.register(3)
  expect(bench.sent[2].ids).toEqual(['i0', 'i1', 'i2', 'i3'])
  bench.register(4)
  expect(bench.sent[3].ids).toEqual(['i4', 'i5', 'i6', 'i7'])
  bench.die(bench.sent[3])
  bench.register(5)
  expect(bench.sent[4].ids).toEqual(['i4', 'i5'])
})

it('S27: poisonDeaths says how often a group may go out whole', () => {
  const bench = withBatch({ poisonDeaths: 1 })
  bench.die(bench.sent[0])
  bench.register(2)
  expect(bench.sent[1].ids.length).toBe(4)
})

it('S27: a death counts for no failure', () => {
  const bench = withBatch({ maxAttempts: 1 })
  bench.die(bench.sent[0])
  bench.register(2)
  bench.complete(bench.sent[1])
  expect(bench.settled.every((end) => end.endsWith('completed'))).toBe(true)
})

for (const count of [1, 2, 3, 7, 8]) {
  for (const at of new Set([0, Math.floor(count / 2), count - 1])) {
    it(`S27: item ${at} of ${count} is found in ceil(log2 b) + 3 deaths, and its neighbours complete`, () => {
      const bench = new Bench()
      bench.register(1)
      bench.submit(Array(count).fill(8))
      bench.do({ type: 'flush', job: null })
      const deaths = workOff(bench, new Set([`i${at}`]))
      expect(deaths).toBeLessThanOrEqual(Math.ceil(Math.log2(count)) + 3)
      expect(bench.settled.filter((end) => !end.endsWith('completed'))).toEqual([
        `i${at}:quarantined`,
      ])
      expect(bench.settled.length).toBe(count)
    })
  }
}

it('S27: several poison items are all found, with one consumer that is started anew', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit(Array(100).fill(8))
  bench.do({ type: 'flush', job: null })
  workOff(bench, new Set(['i3', 'i4', 'i50', 'i99']))
  const bad = bench.settled.filter((end) => !end.endsWith('completed'))
  expect(bad.sort()).toEqual(['i3', 'i4', 'i50', 'i99'].map((id) => `${id}:quarantined`))
  expect(bench.settled.length).toBe(100)
})

/** i0 was alone on gpu1 when that died. */
function withLoneSuspect(): Bench {
  const bench = new Bench({ leaseTimeoutMs: 1000 })
  bench.register(1)
  bench.submit([64])
  bench.die(bench.sent[0])
  bench.do({ type: 'register', consumer: 2, name: 'gpu1', contract: contractOf(bench) })
  bench.die(bench.sent[1])
  return bench
}
const contractOf = (_: Bench) => ({
  batchSize: 8,
  tokens: 64,
  inputLength: 512,
  model: 1,
  layout: 'padded' as const,
  roundTo: 8,
  maxInFlight: 1,
})

it('S27: after a death alone it waits for another consumer, for leaseTimeout at most', () => {
  const bench = withLoneSuspect()
  bench.do({ type: 'register', consumer: 3, name: 'gpu1', contract: contractOf(bench) })
  expect(bench.sent.length).toBe(2)
  bench.advance(300)
  bench.do({ type: 'renew', consumer: 3 })
  bench.advance(600)
  bench.do({ type: 'renew', consumer: 3 })
  expect(bench.sent.length).toBe(2)
  bench.advance(100)
  expect(bench.sent.length).toBe(3)
  expect(bench.sent[2].consumer).toBe(3)
})

it('S27: another consumer gets it at once', () => {
  const bench = withLoneSuspect()
  bench.do({ type: 'register', consumer: 3, name: 'gpu1', contract: contractOf(bench) })
  bench.do({ type: 'register', consumer: 4, name: 'gpu2', contract: contractOf(bench) })
  expect(bench.sent[2].consumer).toBe(4)
})

it('S27: the evidence of a quarantined item is kept', () => {
  const bench = withLoneSuspect()
  bench.do({ type: 'register', consumer: 4, name: 'gpu2', contract: contractOf(bench) })
  bench.die(bench.sent[2])
  expect(bench.settled).toEqual(['i0:quarantined'])
  const [entry] = bench.core.quarantined.values()
  expect(entry.deaths.map((death) => [death.consumer, death.cause])).toEqual([
    ['gpu1', 'connection_closed'],
    ['gpu1', 'connection_closed'],
    ['gpu2', 'connection_closed'],
  ])
  expect(entry).toMatchObject({ item: 1, job: 0, model: 1, length: 64 })
  expect(new TextDecoder().decode(entry.id)).toBe('i0')
  expect(bench.of('quarantine')).toMatchObject([{ item: 1, deaths: entry.deaths }])
})

it('S27: a replayed item is accepted anew, and settles anew', () => {
  const bench = withLoneSuspect()
  bench.do({ type: 'register', consumer: 4, name: 'gpu2', contract: contractOf(bench) })
  bench.die(bench.sent[2])
  bench.register(5)
  expect(bench.do({ type: 'replay', items: [1, 99] })).toContainEqual({
    type: 'replayed',
    items: [1],
    numbers: [2],
    codes: Uint8Array.of(0),
  })
  expect(bench.core.quarantined.size).toBe(0)
  expect(bench.sent[3].ids).toEqual(['i0'])
  expect(bench.sent[3].effect.attempt).toBe(1)
  bench.complete(bench.sent[3])
  expect(bench.settled).toEqual(['i0:quarantined', 'i0:completed'])
  expect(bench.core.counts()).toMatchObject({ accepted: 2, waiting: { items: 0 }, leased: 0 })
})

it('S27: discarded entries are gone, and a deleted job takes its own with it', () => {
  for (const event of [
    { type: 'discard', items: [1] },
    { type: 'deleteJob', job: 0 },
  ] as const) {
    const bench = withLoneSuspect()
    bench.do({ type: 'register', consumer: 4, name: 'gpu2', contract: contractOf(bench) })
    bench.die(bench.sent[2])
    bench.do(event)
    expect(bench.core.counts().quarantine).toEqual({ items: 0, dropped: 0 })
  }
})

it('S27: over maxQuarantinedItems the oldest entry goes, and is counted', () => {
  const bench = new Bench({ maxQuarantinedItems: 2 })
  bench.register(1)
  bench.submit(Array(3).fill(64))
  bench.do({ type: 'flush', job: null })
  workOff(bench, new Set(['i0', 'i1', 'i2']))
  expect(bench.settled.length).toBe(3)
  expect([...bench.core.quarantined.keys()].length).toBe(2)
  expect(bench.core.counts().quarantine).toEqual({ items: 2, dropped: 1 })
})

it('S27: a group goes only to a consumer that holds it whole', () => {
  const bench = withBatch()
  bench.register(2, { batchSize: 3, tokens: 24 })
  bench.register(3)
  bench.die(bench.sent[0])
  expect(bench.sent.slice(1).map((sent) => [sent.consumer, sent.ids.length])).toEqual([[3, 8]])
})

it('S27: where no consumer holds it whole, it goes in the largest parts that fit', () => {
  const bench = withBatch()
  bench.register(2, { batchSize: 3, tokens: 24 })
  bench.die(bench.sent[0])
  for (let at = 1; at < bench.sent.length; at++) bench.complete(bench.sent[at])
  expect(bench.sent.slice(1).map((sent) => sent.ids.length)).toEqual([3, 3, 2])
})

it('S27: a late result takes its item out of the group that waits', () => {
  const bench = withBatch()
  bench.die(bench.sent[0])
  bench.results(bench.sent[0], [0, 0, 0])
  bench.register(2)
  expect(bench.sent[1].ids).toEqual(['i3', 'i4', 'i5', 'i6', 'i7'])
})

it('S27: items of a job on hold wait apart, and come back as suspects', () => {
  const bench = new Bench({ cleanupIdleMs: 1e6 })
  bench.do({ type: 'createJob', job: 1 })
  bench.register(1)
  bench.submit(Array(4).fill(8))
  bench.submit(Array(4).fill(8), 1)
  bench.do({ type: 'pauseJob', job: 1 })
  bench.die(bench.sent[0])
  bench.register(2)
  expect(bench.sent[1].ids).toEqual(['i0', 'i1', 'i2', 'i3'])
  bench.complete(bench.sent[1])
  expect(bench.sent.length).toBe(2)
  bench.do({ type: 'resumeJob', job: 1 })
  expect(bench.sent[2].ids).toEqual(['i4', 'i5', 'i6', 'i7'])
  expect(groupOf(bench.sent[2])).not.toBeNull()
})

it('S27: a consumer that dies before it takes anything makes its channel’s head a suspect, once', () => {
  const bench = new Bench({ channelDepth: 2 })
  for (let consumer = 1; consumer < 40; consumer++) {
    bench.register(consumer)
    if (consumer === 1) bench.submit(Array(16).fill(8))
    bench.do({ type: 'disconnect', consumer, cause: 'connection_closed' })
  }
  expect(bench.core.counts().waiting.items + bench.settled.length).toBe(16)
})

it('S27, S28: deliveries under suspicion do not use up maxDeliveries of the neighbours', () => {
  const bench = withBatch({ maxDeliveries: 2 })
  workOff(bench, new Set(['i5']))
  expect(bench.settled.filter((end) => !end.endsWith(':completed'))).toEqual(['i5:quarantined'])
  expect(bench.settled.length).toBe(8)
})

it('S28: ordinary deliveries of a former suspect count as ever', () => {
  const bench = withBatch({ maxDeliveries: 2 })
  bench.die(bench.sent[0])
  bench.register(2)
  const [, again] = bench.sent
  bench.taken(again)
  bench.results(again, Array(8).fill(RESULT_NACK))
  expect(bench.settled).toEqual([])
  bench.advance(100)
  const last = bench.sent.at(-1)!
  bench.taken(last)
  bench.results(last, Array(last.ids.length).fill(RESULT_NACK))
  expect(bench.settled).toEqual(last.ids.map((id) => `${id}:failed`))
})
