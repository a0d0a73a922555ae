import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  attach,
  createWriter,
  message,
  orphanedHugeBytes,
  put,
  serve,
  startChild,
  temporaryFolder,
} from './harness.js'

interface Report {
  sequence: number
  length: number
  sum: number
  after: number
  held: number
}

async function text(stream: NodeJS.ReadableStream): Promise<string> {
  let all = ''
  for await (const chunk of stream) all += chunk
  return all
}

describe('two processes', () => {
  it('reads batches in place, detached once released', async () => {
    const writer = createWriter()
    const child = startChild('consumer', [await serve(writer), 'read'])
    expect(await message(child)).toEqual({ ready: writer.capacityBytes, pages: writer.pages })
    for (let sequence = 1; sequence <= 100; sequence++) {
      const length = 1 + ((sequence * 7919) % 400_000)
      const reported = message<Report>(child)
      put(writer, sequence, length, sequence)
      const sum = (length * sequence) >>> 0
      expect(await reported).toEqual({ sequence, length, sum, after: 0, held: 0 })
    }
    expect(writer.stat()).toMatchObject({ usedBytes: 0, claims: 100, poisoned: false })
  })

  it('hands space back to a writer that waits', async () => {
    const writer = createWriter()
    const child = startChild('consumer', [await serve(writer), 'read'])
    await message(child)
    let reports = 0
    const all = new Promise<void>((resolve) => {
      child.on('message', (report: Partial<Report>) => {
        if (report.sequence !== reports) return
        reports++
        if (reports === 60) resolve()
      })
    })
    for (let sequence = 0; sequence < 60; ) {
      const claim = writer.claim(300_000)
      if (claim) claim.commit(sequence++)
      else await new Promise<void>((resolve) => writer.onSpace(resolve))
    }
    await all
    expect(writer.stat().fulls).toBeGreaterThan(0)
  })

  it('ends a consumer that writes through its view, with a line that says why', async () => {
    const writer = createWriter()
    const child = startChild('consumer', [await serve(writer), 'write'])
    const error = text(child.stderr!)
    await message(child)
    put(writer, 1, 1000, 7)
    const [code, signal] = await once(child, 'exit')
    expect([code, signal]).toEqual([null, 'SIGSEGV'])
    expect(await error).toContain(
      `shm-ring: write into the read-only mapping of ring ${writer.id} at offset 0x00000000a4: ` +
        'a batch is read in place, copy it before changing it',
    )
    expect(new Uint8Array(writer.memory)[64 + 100]).toBe(7)
  })

  it('leaves no page behind when the consumer is killed, and knows what it had taken', async () => {
    const writer = createWriter()
    const child = startChild('consumer', [await serve(writer), 'hold'])
    await message(child)
    const claims = [1, 2, 3].map((sequence) => {
      const claim = writer.claim(1000)!
      if (sequence < 3) claim.commit(sequence)
      return claim
    })
    await message(child)
    await expect.poll(() => claims[1]!.taken).toBe(true)
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
    expect(claims.map((claim) => claim.taken)).toEqual([true, true, false])
    claims[2]!.commit(3)
    expect(claims[2]!.taken).toBe(false)
    writer.close()
    await expect.poll(orphanedHugeBytes, { timeout: 10_000 }).toBe(0)
  })

  it('lets the consumer read what was committed when the broker is killed, and leaves no page', async () => {
    const path = join(temporaryFolder(), 'broker.sock')
    const broker = startChild('broker', [path])
    await message(broker)
    const committed = message(broker)
    const reader = await attach(path)
    await committed
    const exit = once(broker, 'exit')
    broker.kill('SIGKILL')
    await exit
    const sequences = []
    for (let record = reader.next(); record; record = reader.next()) {
      sequences.push(record.batchSequence)
      record.release()
    }
    expect(sequences).toEqual([1, 2, 3])
    reader.close()
    await expect.poll(orphanedHugeBytes, { timeout: 10_000 }).toBe(0)
  })

  it('leaves no page behind when both are killed at once', async () => {
    const path = join(temporaryFolder(), 'broker.sock')
    const broker = startChild('broker', [path])
    await message(broker)
    const consumer = startChild('consumer', [path, 'hold'])
    await message(consumer)
    const exits = [once(broker, 'exit'), once(consumer, 'exit')]
    broker.kill('SIGKILL')
    consumer.kill('SIGKILL')
    await Promise.all(exits)
    await expect.poll(orphanedHugeBytes, { timeout: 10_000 }).toBe(0)
  })

  it('tells the consumer by the socket that the broker is gone', async () => {
    const path = join(temporaryFolder(), 'broker.sock')
    const broker = startChild('broker', [path])
    await message(broker)
    const consumer = startChild('consumer', [path, 'read'])
    const gone = new Promise<void>((resolve) => {
      consumer.on('message', (report: { brokerGone?: boolean }) => {
        if (report.brokerGone) resolve()
      })
    })
    await message(consumer)
    broker.kill('SIGKILL')
    await gone
  })
})
