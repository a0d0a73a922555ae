import { readFileSync, readSync, writeSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { RING_ABI_VERSION, RING_ERROR_CODES, RingWriter } from '../dist/index.js'
import { native } from '../dist/native.js'
import { codeOf, createWriter, MIB, ownHugeBytes, pair, put, turn } from './harness.js'

describe('ring: stat', () => {
  it('tells positions as text, past 2^53, and is right about what was claimed, settled and read', async () => {
    const start = 2n ** 60n
    const { writer, reader } = await pair({ startPosition: start })
    const [first, second] = [writer.claim(64)!, writer.claim(64)!]
    first.commit(1)
    const at = (bytes: number) => String(start + BigInt(bytes))
    expect(writer.stat()).toMatchObject({
      claimedPosition: at(256),
      committedPosition: at(128),
      takenPosition: at(0),
      readPosition: at(0),
      usedBytes: 256,
    })
    reader.next()!.take()
    expect(writer.stat()).toMatchObject({ takenPosition: at(128), readPosition: at(0) })
    second.abort()
    expect(writer.stat().committedPosition).toBe(at(256))
  })
})

describe('ring: set-up', () => {
  it('says which pages it got, as /proc says too', () => {
    const before = ownHugeBytes()
    const writer = createWriter()
    new Uint8Array(writer.memory).fill(1)
    expect(writer.pages === 'huge').toBe(ownHugeBytes() - before === 4 * MIB)
    expect(writer.pageSizeBytes).toBe(writer.pages === 'base' ? 4096 : 2 * MIB)
    expect(writer.pagesReason).toMatch(/^2 MiB huge pages$|2 MiB pages .*: using /)
    expect(writer.maxPayloadBytes).toBe((4 * MIB) / 8 - 64)
    expect(writer.memory.byteLength).toBe(4 * MIB)
  })

  it('uses no huge pages when they are off', () => {
    const writer = createWriter({ hugePages: 'off' })
    expect(writer.pages).toBe('base')
    expect(writer.pagesReason).toBe('huge pages are off: using 4 KiB pages')
  })

  it('refuses with a code when huge pages are required and the pool is too small', () => {
    const total = Number(/HugePages_Total:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))![1])
    const capacityBytes = 2 ** Math.ceil(Math.log2((total + 2) * 2 * MIB))
    try {
      RingWriter.create({ capacityBytes, hugePages: 'require' })
      expect.unreachable()
    } catch (error) {
      expect(error).toMatchObject({ code: 'RING_HUGE_PAGES_UNAVAILABLE', field: 'hugePages' })
      expect((error as Error).message).toMatch(/2 MiB pages free \(pool: \d+\); reserve them/)
    }
  })

  it.each([0, 1, 4096, 6 * MIB, 2 ** 40, -1, 1.5, Number.NaN, 2 ** 60])(
    'refuses a capacity of %d',
    (capacityBytes) => {
      expect(codeOf(() => RingWriter.create({ capacityBytes }))).toBe('RING_CAPACITY_INVALID')
    },
  )

  it('refuses unknown options', () => {
    const wrong = { capacityBytes: 4 * MIB, hugePages: 'maybe' as 'try' }
    expect(codeOf(() => RingWriter.create(wrong))).toBe('RING_OPTION_INVALID')
    const odd = { capacityBytes: 4 * MIB, startPosition: 1n }
    expect(codeOf(() => RingWriter.create(odd))).toBe('RING_OPTION_INVALID')
  })

  it('has one table of error codes on both sides', () => {
    expect(native().errorCodes).toEqual(Object.keys(RING_ERROR_CODES))
    expect(native().abiVersion).toBe(RING_ABI_VERSION)
  })
})

describe('ring: writer', () => {
  it('hands out aligned space and refuses what is too large', () => {
    const writer = createWriter()
    const claim = writer.claim(1000)!
    expect(claim.byteOffset % 64).toBe(0)
    expect(claim.byteLength).toBe(1000)
    expect(codeOf(() => writer.claim(writer.maxPayloadBytes + 1))).toBe('RING_RECORD_TOO_LARGE')
    expect(codeOf(() => writer.claim(2 ** 53 - 1))).toBe('RING_RECORD_TOO_LARGE')
    expect(() => writer.claim(-1)).toThrow(RangeError)
    expect(() => writer.claim(0.5)).toThrow(RangeError)
  })

  it('settles a claim once', () => {
    const writer = createWriter()
    const claim = writer.claim(10)!
    claim.commit(1)
    expect(codeOf(() => claim.commit(1))).toBe('RING_CLAIM_SETTLED')
    expect(codeOf(() => claim.abort())).toBe('RING_CLAIM_SETTLED')
  })

  it('keeps a claim open whose sequence was no whole number', () => {
    const writer = createWriter()
    const claim = writer.claim(10)!
    expect(() => claim.commit(-1)).toThrow(RangeError)
    claim.commit(2 ** 53 - 1)
  })

  it('detaches the memory on close and fails with a code afterwards', () => {
    const writer = createWriter()
    const claim = writer.claim(10)!
    const view = new Uint8Array(writer.memory)
    writer.close()
    writer.close()
    expect(view.length).toBe(0)
    expect(codeOf(() => writer.claim(1))).toBe('RING_CLOSED')
    expect(codeOf(() => claim.commit(1))).toBe('RING_CLOSED')
    expect(codeOf(() => writer.stat())).toBe('RING_CLOSED')
    expect(codeOf(() => writer.descriptors())).toBe('RING_CLOSED')
    expect(codeOf(() => writer.onSpace(() => {}))).toBe('RING_CLOSED')
    expect(claim.taken).toBe(false)
  })
})

describe('ring: writer and reader', () => {
  it('reads batches in place and in order', async () => {
    const { writer, reader } = await pair()
    put(writer, 10, 1000, 1)
    put(writer, 11, 0, 0)
    put(writer, 12, 64, 3)
    const records = [reader.next()!, reader.next()!, reader.next()!]
    expect(reader.next()).toBe(null)
    expect(records.map((record) => record.batchSequence)).toEqual([10, 11, 12])
    expect(records.map((record) => record.payload.byteLength)).toEqual([1000, 0, 64])
    expect(new Uint8Array(records[2]!.payload).every((byte) => byte === 3)).toBe(true)
    expect(reader.held).toBe(3)
    expect(reader.id).toBe(writer.id)
  })

  it('detaches on release, once, and gives the space back', async () => {
    const { writer, reader } = await pair()
    put(writer, 1, 1000, 1)
    put(writer, 2, 1000, 2)
    const first = reader.next()!
    const second = reader.next()!
    const view = new Uint8Array(second.payload)
    second.release()
    second.release()
    expect(second.released).toBe(true)
    expect(second.payload.byteLength).toBe(0)
    expect(view[0]).toBe(undefined)
    expect(writer.stat().usedBytes).toBe(2 * 1088)
    first.release()
    expect(writer.stat().usedBytes).toBe(0)
    expect(reader.held).toBe(0)
  })

  it('shows a record only when all before it are settled', async () => {
    const { writer, reader } = await pair()
    const first = writer.claim(10)!
    const second = writer.claim(10)!
    const third = writer.claim(10)!
    third.commit(3)
    second.abort()
    expect(reader.next()).toBe(null)
    first.commit(1)
    expect(reader.next()!.batchSequence).toBe(1)
    expect(reader.next()!.batchSequence).toBe(3)
    expect(writer.stat().aborts).toBe(1)
  })

  it('tells what was taken, also after close', async () => {
    const { writer, reader } = await pair()
    const first = writer.claim(10)!
    const second = writer.claim(10)!
    first.commit(1)
    second.commit(2)
    const record = reader.next()!
    expect(first.taken).toBe(false)
    record.take()
    expect(first.taken).toBe(true)
    expect(second.taken).toBe(false)
    writer.close()
    expect(first.taken).toBe(true)
    expect(second.taken).toBe(false)
  })

  it.each([2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n, 2n ** 64n])(
    'runs across position %d',
    async (edge) => {
      const { writer, reader } = await pair({ startPosition: edge - 128n, hugePages: 'off' })
      for (let sequence = 0; sequence < 50; sequence++) {
        put(writer, sequence, 100_000, sequence)
        const record = reader.next()!
        expect(record.batchSequence).toBe(sequence)
        expect(new Uint8Array(record.payload)[99_999]).toBe(sequence)
        record.release()
      }
      expect(writer.stat()).toMatchObject({ poisoned: false, usedBytes: 0 })
    },
  )

  it('calls a waiting writer when the reader released something', async () => {
    const { writer, reader } = await pair()
    let sequence = 0
    for (let claim = writer.claim(500_000); claim; claim = writer.claim(500_000)) {
      claim.commit(sequence++)
    }
    let calls = 0
    const space = new Promise<void>((resolve) => {
      writer.onSpace(() => {
        calls++
        resolve()
      })
    })
    await turn()
    expect(calls).toBe(0)
    reader.next()!.release()
    await space
    expect(writer.claim(400_000)).not.toBe(null)
    reader.next()!.release()
    await turn()
    await turn()
    expect(calls).toBe(1)
  })

  it('waits anew after a wake-up for nothing, which uses a wait up', async () => {
    const writer = createWriter()
    const [, wctl, , , spacePipe] = writer.descriptors()
    const waitNumber = () => {
      const bytes = Buffer.alloc(8)
      readSync(wctl!, bytes, 0, 8, 0x180)
      return bytes.readBigUInt64LE()
    }
    while (writer.claim(500_000)) {
      // until it is full
    }
    writer.onSpace(() => expect.unreachable())
    const first = waitNumber()
    expect(first).not.toBe(0n)
    writeSync(spacePipe!, 'x')
    await expect.poll(waitNumber).toBe(first + 1n)
  })

  it('calls a writer that came too late to wait', async () => {
    const { writer, reader } = await pair()
    while (true) {
      const claim = writer.claim(500_000)
      if (!claim) break
      claim.commit(1)
    }
    reader.next()!.release()
    await new Promise<void>((resolve) => writer.onSpace(resolve))
  })

  it('calls the reader for records from before and after it asked', async () => {
    const { writer, reader } = await pair()
    const seen: number[] = []
    let enough = () => {}
    put(writer, 0, 10, 0)
    reader.onReadable(() => {
      for (let record = reader.next(); record; record = reader.next()) {
        seen.push(record.batchSequence)
        record.release()
      }
      enough()
    })
    for (let sequence = 1; sequence < 200; sequence++) {
      const read = new Promise<void>((resolve) => {
        enough = () => seen.includes(sequence) && resolve()
      })
      put(writer, sequence, 10, 0)
      await read
    }
    expect(seen).toEqual([...Array(200).keys()])
  })

  it('sends one wake-up for a group of commits', async () => {
    const { writer, reader } = await pair()
    expect(reader.next()).toBe(null)
    for (let sequence = 0; sequence < 50; sequence++) put(writer, sequence, 10, 0)
    expect(writer.stat().wakeups).toBe(1)
  })

  it('detaches everything held when the reader closes', async () => {
    const { writer, reader } = await pair()
    put(writer, 1, 10, 1)
    put(writer, 2, 10, 1)
    const first = reader.next()!
    const second = reader.next()!
    reader.close()
    reader.close()
    expect(first.payload.byteLength + second.payload.byteLength).toBe(0)
    first.release()
    second.take()
    expect(reader.held).toBe(0)
    expect(codeOf(() => reader.next())).toBe('RING_CLOSED')
  })

  it('keeps heap and external memory flat over many batches', async () => {
    const { writer, reader } = await pair()
    const before = process.memoryUsage().external
    for (let sequence = 0; sequence < 50_000; sequence++) {
      writer.claim(200_000)!.commit(sequence)
      const record = reader.next()!
      record.take()
      record.release()
    }
    expect(process.memoryUsage().external - before).toBeLessThan(64 * MIB)
  })
})
