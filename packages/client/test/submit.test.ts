// Submission: grouping, order, backpressure, broken connections, refusals.
import { describe, expect, it } from 'vitest'
import { FabricClient, FabricError, type Refusal, type SubmitItem } from '../src/index.js'
import { closedAddress, type FakeBroker, startFakeBroker } from './support/fake-broker.js'

const item = (i: number): SubmitItem => ({ id: `i${i}`, tokens: [101, i, 102] })
const items = (count: number) => Array.from({ length: count }, (_, i) => item(i))
const ids = (from: number, to: number) =>
  items(to)
    .slice(from)
    .map(({ id }) => id)

/** A client whose waits take no time, and the waits it asked for. */
async function setUp() {
  const broker = await startFakeBroker()
  const waits: number[] = []
  const sleep = async (ms: number) => {
    waits.push(ms)
  }
  const client = new FabricClient({ broker: broker.address, retry: { sleep } })
  return { broker, waits, client, job: client.job('j1') }
}

const inFlightOne = { maxInFlight: 1 }
const accepted = (broker: FakeBroker) => [...broker.items.keys()]

describe('submit', () => {
  it('groups items by count and by bytes, in input order, and flushes at the end', async () => {
    const { broker, job } = await setUp()
    const group = { items: 4, bytes: 120 }
    const source = [...items(6), { id: 'big', tokens: new Int32Array(200) }, ...items(8).slice(6)]
    const summary = await job.submit(source, { group, ...inFlightOne })
    expect(broker.requests).toEqual([['i0', 'i1', 'i2'], ['i3', 'i4', 'i5'], ['big'], ['i6', 'i7']])
    expect(broker.items.get('big')?.tokens).toHaveLength(200)
    expect(summary).toMatchObject({ items: 9, accepted: 9, tokens: 224, requests: 4, retries: 0 })
    expect(broker.flushes).toBe(1)
  })

  it('leaves the input open when more will follow', async () => {
    const { broker, job } = await setUp()
    await job.submit(items(1), { more: true })
    await job.submit([], { more: true })
    expect([broker.flushes, broker.requests.length]).toEqual([0, 1])
  })

  it('sends payloads as base64 with their length, and an item’s own model', async () => {
    const { broker, job } = await setUp()
    await job.submit([
      { id: 'a', payload: Uint8Array.of(0, 255), length: 7, model: 2 },
      { id: 'b', payload: 'AP8=', length: 8 },
    ])
    expect(broker.items.get('a')).toEqual({ id: 'a', payload: 'AP8=', length: 7, model: 2 })
    expect(broker.items.get('b')).toEqual({ id: 'b', payload: 'AP8=', length: 8 })
  })

  it('sends what a slow source gave without waiting for a full group', async () => {
    const { broker, job } = await setUp()
    let arrived = () => {}
    const firstArrived = new Promise<void>((resolve) => {
      arrived = resolve
    })
    broker.onItems = () => void arrived()
    async function* slow() {
      yield item(0)
      await firstArrived // comes only if the first item was sent by itself
      yield item(1)
    }
    expect((await job.submit(slow())).accepted).toBe(2)
    expect(broker.requests).toEqual([['i0'], ['i1']])
  })

  it('keeps at most maxInFlight requests open and begins them in input order', async () => {
    const { broker, job } = await setUp()
    let open = 0
    let most = 0
    broker.onItems = async () => {
      most = Math.max(most, ++open)
      await new Promise(setImmediate)
      open -= 1
      return undefined
    }
    await job.submit(items(40), { group: { items: 2 }, maxInFlight: 3 })
    expect(most).toBeLessThanOrEqual(3)
    expect(accepted(broker).sort()).toEqual(ids(0, 40).sort())
  })
})

describe('submit: backpressure', () => {
  it('waits as long as asked and sends exactly the refused suffix again', async () => {
    const { broker, job, waits } = await setUp()
    const room = [3, 0, 2]
    broker.onItems = (sent) => broker.accept(sent, room.shift() ?? sent.length)
    const summary = await job.submit(items(10))
    expect(broker.requests).toEqual([ids(0, 10), ids(3, 10), ids(3, 10), ids(5, 10)])
    expect(accepted(broker)).toEqual(ids(0, 10))
    expect(waits).toEqual([700, 700, 700])
    expect(summary).toMatchObject({ accepted: 10, refused: 0, retries: 3, waitedMs: 2100 })
  })

  it('does the same for a refusal of the whole request: 429, 503 and 507 with Retry-After', async () => {
    const { broker, job, waits } = await setUp()
    const refusals = [
      [429, 'FABRIC_RESULTS_UNREAD', { 'retry-after': '2' }],
      [503, 'FABRIC_DRAINING', { 'retry-after': '5' }],
      [429, 'FABRIC_QUEUE_FULL', {}],
      [507, 'FABRIC_DISK_FULL', { 'retry-after': '7' }],
      [503, 'FABRIC_DISK_FAILED', { 'retry-after': '3' }],
    ] as const
    let next = 0
    broker.onItems = () => {
      const refusal = refusals[next++]
      if (refusal === undefined) return undefined
      const [status, code, headers] = refusal
      return { status, headers, body: { error: { code, message: 'later' } } }
    }
    const told: string[] = []
    await job.submit(items(2), { onWait: (because, ms) => told.push(`${because?.code} ${ms}`) })
    expect(waits).toEqual([2000, 5000, 1000, 7000, 3000])
    expect(told[0]).toBe('FABRIC_RESULTS_UNREAD 2000')
    expect(broker.requests).toHaveLength(6)
  })

  it('sends items again that the broker could not keep on its disk', async () => {
    const { broker, job } = await setUp()
    broker.onItems = (sent) => {
      if (broker.requests.length > 1) return undefined
      const error = { code: 'FABRIC_DISK_FULL', message: 'no room' }
      const items = sent.map(({ id }) => ({ id, status: 'refused', error }))
      return { body: { accepted: 0, duplicate: 0, refused: 2, items, retryAfterMs: 5 } }
    }
    expect(await job.submit(items(2))).toMatchObject({ accepted: 2, refused: 0, retries: 1 })
  })

  it('waits for a broker that drains before it ends the input', async () => {
    const { broker, job, waits } = await setUp()
    const error = { code: 'FABRIC_DRAINING', message: 'draining' }
    const drains = [{ status: 503, headers: { 'retry-after': '4' }, body: { error } }]
    broker.onFlush = () => drains.pop()
    await job.submit(items(1))
    expect([waits, broker.flushes]).toEqual([[4000], 2])
  })

  it('sends nothing again before everything earlier is in', async () => {
    const { broker, job } = await setUp()
    let full = true
    broker.onItems = async (sent) => {
      if (!full) return broker.accept(sent)
      if (broker.requests.length === 4) full = false
      return broker.accept(sent, 0)
    }
    await job.submit(items(8), { group: { items: 2 }, maxInFlight: 4 })
    expect(broker.requests.slice(0, 4).sort()).toEqual([0, 2, 4, 6].map((i) => ids(i, i + 2)))
    expect(accepted(broker)).toEqual(ids(0, 8))
  })
})

describe('submit: broken connections', () => {
  it('sends a request again whose answer was lost; a duplicate counts as accepted', async () => {
    const { broker, job, waits } = await setUp()
    broker.onItems = (sent) => {
      if (broker.requests.length > 2) return undefined
      broker.accept(sent)
      return 'cut'
    }
    const summary = await job.submit(items(3))
    expect(broker.requests).toEqual([ids(0, 3), ids(0, 3), ids(0, 3)])
    expect(waits).toEqual([100, 200])
    expect(summary).toMatchObject({ items: 3, accepted: 0, duplicate: 3, tokens: 9 })
  })

  it('sends a request again whose answer broke off within its body', async () => {
    const { broker, job } = await setUp()
    broker.onItems = (sent) => {
      if (broker.requests.length > 1) return undefined
      broker.accept(sent)
      return 'cut within the body'
    }
    expect(await job.submit(items(3))).toMatchObject({ accepted: 0, duplicate: 3, retries: 1 })
  })

  it('repeats a flush until it is answered', async () => {
    const { broker, job } = await setUp()
    let cuts = 2
    broker.onFlush = () => (cuts-- > 0 ? 'cut' : undefined)
    await job.submit(items(1))
    expect(broker.flushes).toBe(1)
  })

  it('gives up with FABRIC_BROKER_UNREACHABLE and the address when no broker is there', async () => {
    const waits: number[] = []
    const sleep = async (ms: number) => void waits.push(ms)
    const broker = await closedAddress()
    const client = new FabricClient({ broker, retry: { sleep, forMs: 700 } })
    const error = await client
      .job('j1')
      .submit(items(1))
      .catch((e) => e)
    expect(error).toBeInstanceOf(FabricError)
    expect(error.code).toBe('FABRIC_BROKER_UNREACHABLE')
    expect(error.message).toContain(broker)
    expect(waits).toEqual([100, 200, 400])
    await expect(client.createJob()).rejects.toMatchObject({ code: 'FABRIC_BROKER_UNREACHABLE' })
  })

  it('takes a proxy’s 502 for a lost connection, and another server’s page for a mistake', async () => {
    const { broker, job } = await setUp()
    const pages = [{ status: 502, body: 'Bad Gateway' }]
    broker.onItems = () => pages.pop()
    expect((await job.submit(items(1))).accepted).toBe(1)
    broker.onItems = () => ({ status: 404, body: '<html>' })
    await expect(job.submit(items(1))).rejects.toMatchObject({ code: 'FABRIC_PROTOCOL' })
  })
})

describe('submit: refused items', () => {
  it('reports each with its place and goes on', async () => {
    const { broker, job } = await setUp()
    broker.onItems = (sent) => {
      const { body } = broker.accept(sent) as { body: { items: unknown[] } }
      const error = { code: 'FABRIC_ITEM_MALFORMED', message: 'no', field: 'tokens', line: 2 }
      body.items[1] = { id: 'i1', status: 'refused', error }
      return { body }
    }
    const refusals: Refusal[] = []
    const summary = await job.submit(items(3), { onRefused: (refusal) => refusals.push(refusal) })
    expect(refusals).toEqual(summary.refusals)
    expect(refusals).toMatchObject([{ item: { id: 'i1' }, index: 1, error: { field: 'tokens' } }])
    expect(summary).toMatchObject({ items: 3, refused: 1, tokens: 6 })
  })

  it('finds the item that makes a whole request too large, and sends the others', async () => {
    const { broker, job } = await setUp()
    broker.onItems = (sent) => {
      if (!sent.some(({ id }) => id === 'i5') && sent.length < 5) return undefined
      return { status: 413, body: { error: { code: 'FABRIC_TOO_LARGE', message: 'too large' } } }
    }
    const summary = await job.submit(items(9), inFlightOne)
    expect(summary.refusals).toMatchObject([{ index: 5, error: { code: 'FABRIC_TOO_LARGE' } }])
    expect(accepted(broker)).toEqual(ids(0, 9).filter((id) => id !== 'i5'))
  })

  it('stops at what no resend can mend, and closes the source', async () => {
    const { broker, job } = await setUp()
    const error = { code: 'FABRIC_NOT_FOUND', message: 'no job', field: 'job' }
    broker.onItems = () => ({ status: 404, body: { error } })
    let closed = false
    async function* endless() {
      try {
        for (let i = 0; ; i++) yield item(i)
      } finally {
        closed = true
      }
    }
    await expect(job.submit(endless())).rejects.toMatchObject(error)
    await new Promise(setImmediate)
    expect(closed).toBe(true)
  })

  it('passes on an error of the source', async () => {
    const { job } = await setUp()
    const broken = async function* () {
      yield item(0)
      throw new Error('disk gone')
    }
    await expect(job.submit(broken())).rejects.toThrow('disk gone')
  })

  it('stops when it is told to, also while it waits for room', async () => {
    const broker = await startFakeBroker()
    const job = new FabricClient({ broker: broker.address }).job('j1')
    broker.onItems = (sent) => broker.accept(sent, 0)
    const stop = new AbortController()
    const done = job.submit(items(1), { signal: stop.signal, onWait: () => stop.abort('enough') })
    await expect(done).rejects.toBe('enough')
    expect(broker.flushes).toBe(0)
  })
})
