// Results: decoding, following, going on by offset after a broken connection.
import { describe, expect, it } from 'vitest'
import { FabricClient, type JobResult, type ResultsOptions } from '../src/index.js'
import { parseResult } from '../src/results/value.js'
import { type ResultInput, startFakeBroker } from './support/fake-broker.js'

const completed = (i: number): ResultInput => ({
  id: `i${i}`,
  status: 'completed',
  attempts: 1,
  result: i,
})

async function setUp(count: number) {
  const broker = await startFakeBroker()
  broker.results.push(...Array.from({ length: count }, (_, i) => completed(i)))
  broker.ended = true
  const waits: number[] = []
  const sleep = async (ms: number) => void waits.push(ms)
  const client = new FabricClient({ broker: broker.address, retry: { sleep } })
  const read = async (options: ResultsOptions = {}) => {
    const results: JobResult[] = []
    for await (const result of client.job('j1').results(options)) results.push(result)
    return results
  }
  return { broker, client, read, waits }
}

const values = (results: JobResult[]) => results.map(({ result }) => result)
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

describe('results', () => {
  it('come once each, in order, until the job ends', async () => {
    const { read } = await setUp(300)
    expect(values(await read())).toEqual(upTo(300))
  })

  it('go on behind the last one after connections that broke', async () => {
    const { broker, read, waits } = await setUp(100)
    const parts = [30, 0, 50]
    broker.onResults = () => {
      const count = parts.shift()
      return count === undefined ? null : { count, cut: true }
    }
    expect(values(await read())).toEqual(upTo(100))
    expect(broker.offsets.slice(0, 4)).toEqual([0, 30, 30, 80])
    expect(waits).toHaveLength(3)
  })

  it('are asked for again as a broker that drains says, however often', async () => {
    const { broker, read, waits } = await setUp(3)
    const error = { code: 'FABRIC_DRAINING', message: 'draining' }
    const refusal = { status: 503, headers: { 'retry-after': '400' }, body: { error } }
    broker.resultRefusals.push(refusal, refusal)
    expect(values(await read())).toEqual(upTo(3))
    expect(waits).toEqual([400_000, 400_000])
  })

  it('go on when the broker closed the stream before the job ended', async () => {
    const { broker, read } = await setUp(20)
    broker.ended = false
    broker.onResults = (offset) => {
      if (offset === 20) broker.ended = true
      return { count: offset === 10 && broker.offsets.length === 2 ? 0 : 10, cut: false }
    }
    expect(values(await read())).toEqual(upTo(20))
  })

  it('begin at the offset that is asked for, and end at once without follow', async () => {
    const { broker, read } = await setUp(10)
    broker.ended = false
    expect(values(await read({ offset: 7, follow: false }))).toEqual([7, 8, 9])
    expect(broker.offsets).toEqual([7])
  })

  it('are not read twice when the broker sends some again', async () => {
    const { broker, read } = await setUp(10)
    const all = broker.results.slice()
    broker.onResults = (offset) => {
      if (offset !== 0) return null
      broker.results.splice(0, 10, ...all.slice(0, 5), ...all.slice(0, 5))
      return { count: 5, cut: true }
    }
    const results = await read()
    expect(results.map(({ offset }) => offset)).toEqual(upTo(10))
  })

  it('stop with an error that says so when one is missing', async () => {
    const { broker, read } = await setUp(3)
    Object.assign(broker.results[1], { offset: 2 })
    await expect(read()).rejects.toMatchObject({ code: 'FABRIC_PROTOCOL', field: 'offset' })
  })

  it('of a job that does not exist are FABRIC_NOT_FOUND', async () => {
    const { client } = await setUp(0)
    await expect(client.job('none').results().next()).rejects.toMatchObject({
      code: 'FABRIC_NOT_FOUND',
    })
  })

  it('stop when they are told to', async () => {
    const { broker, client } = await setUp(5)
    broker.ended = false
    const stop = new AbortController()
    const results = client.job('j1').results({ signal: stop.signal })
    await results.next()
    stop.abort('enough')
    await expect(
      (async () => {
        for await (const _ of results);
      })(),
    ).rejects.toBe('enough')
  })
})

describe('one result', () => {
  const line = (result: unknown) =>
    JSON.stringify({ offset: 0, id: 'a', status: 'completed', attempts: 1, result })

  it('is a Float32Array for a float32 row, bytes for bytes, else what the handler said', () => {
    const row = Float32Array.of(0.1, -2, 3e-9)
    const base64 = Buffer.from(row.buffer).toString('base64')
    expect(parseResult(line({ dtype: 'float32', base64 })).result).toEqual(row)
    expect(parseResult(line({ dtype: 'bytes', base64: 'AP8=' })).result).toEqual(
      Uint8Array.of(0, 255),
    )
    expect(parseResult(line({ label: 'cat' })).result).toEqual({ label: 'cat' })
    expect(parseResult(line(null)).result).toBeNull()
  })

  it('may be an error, and says how often it was tried and how far it was cut', () => {
    const failed = {
      offset: 4,
      id: 'a',
      status: 'failed',
      attempts: 5,
      error: { code: 'FABRIC_MAX_ATTEMPTS', message: 'x' },
      truncatedTo: 512,
    }
    expect(parseResult(JSON.stringify(failed))).toEqual(failed)
  })

  it('that is not JSON is FABRIC_PROTOCOL', () => {
    expect(() => parseResult('<html>')).toThrow(
      expect.objectContaining({ code: 'FABRIC_PROTOCOL' }),
    )
  })
})
