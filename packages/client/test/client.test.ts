// The client's small requests and its address.
import { describe, expect, it } from 'vitest'
import { FabricClient } from '../src/index.js'
import { LineSplitter } from '../src/lines.js'
import { startFakeBroker } from './support/fake-broker.js'

describe('client', () => {
  it('creates a job under a name or a random one, and reads its counts', async () => {
    const broker = await startFakeBroker()
    const client = new FabricClient({ broker: `${broker.address}/` })
    expect(client.broker).toBe(broker.address)
    expect((await client.createJob({ id: 'nightly', model: 1 })).id).toBe('nightly')
    expect((await client.createJob({ model: 1 })).id).toMatch(/^[0-9a-f-]{36}$/)
    expect(await client.job('nightly').info()).toMatchObject({ id: 'nightly', state: 'open' })
    expect(await client.state()).toEqual({ consumers: [] })
  })

  it('sends its API key with every request', async () => {
    const broker = await startFakeBroker()
    const client = new FabricClient({ broker: broker.address, apiKey: 'k1' })
    await (await client.createJob()).submit([{ id: 'a', tokens: [1] }])
    expect(broker.headers).toHaveLength(3)
    for (const headers of broker.headers) expect(headers.authorization).toBe('Bearer k1')
  })

  it.each(['127.0.0.1:7410', 'unix:/run/x.sock', 'localhost', ''])(
    'refuses %j as an address and shows a good one',
    (broker) => {
      expect(() => new FabricClient({ broker })).toThrow(
        expect.objectContaining({
          code: 'FABRIC_USAGE',
          field: 'broker',
          message: expect.stringContaining('http://127.0.0.1:7410'),
        }),
      )
    },
  )
})

describe('line splitter', () => {
  const split = (chunks: string[], maxBytes?: number) => {
    const splitter = new LineSplitter(maxBytes === undefined ? {} : { maxBytes })
    const lines = chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk)))
    return [lines, splitter.end()]
  }

  it('joins lines over chunks, characters of several bytes included', () => {
    const bytes = Buffer.from('añb\n\n€')
    const splitter = new LineSplitter()
    const lines = [...bytes].flatMap((byte) => splitter.push(Uint8Array.of(byte)))
    expect([lines, splitter.end()]).toEqual([['añb', ''], '€'])
  })

  it('passes a line over the limit on as null and keeps the next', () => {
    expect(split(['aaa', 'aaa', 'a\nbb\n', 'ccccc\ndd'], 4)).toEqual([[null, 'bb', null], 'dd'])
    expect(split(['aaaaaa'], 4)).toEqual([[], null])
    expect(split(['a\n'])).toEqual([['a'], undefined])
  })
})
