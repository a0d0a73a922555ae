// Several writers of one ring, each on a thread of its own.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type RingReader, RingWriter } from '../dist/index.js'
import { createWriter, MIB, pair } from './harness.js'

function startWriter(writer: RingWriter, rest: Record<string, unknown>): Worker {
  const worker = new Worker(new URL('children/worker-claims.mjs', import.meta.url), {
    workerData: { handle: writer.share(), ...rest },
  })
  onTestFinished(() => void worker.terminate())
  return worker
}

/** Reads until `enough` says so, calling `see` for each record before its release. */
function drain(reader: RingReader, see: (words: Uint32Array, sequence: number) => boolean) {
  return new Promise<void>((resolve, reject) => {
    reader.onReadable(() => {
      try {
        for (let record = reader.next(); record; record = reader.next()) {
          const enough = see(new Uint32Array(record.payload), record.batchSequence)
          record.release()
          if (enough) resolve()
        }
      } catch (error) {
        reject(error)
      }
    })
  })
}

describe('several writer threads', () => {
  it('deliver each record once, whole, in claim order of each writer, through a ring that is full', async () => {
    const { writer, reader } = await pair()
    const records = 2000
    const last = [0, 0, 0]
    let seen = 0
    const all = drain(reader, (words, sequence) => {
      const from = words[0]!
      expect(sequence).toBe(last[from]! + 1)
      last[from] = sequence
      expect(words[1]).toBe(sequence)
      expect(words.at(-1)).toBe(sequence)
      return ++seen === 3 * records
    })
    const workers = [0, 1, 2].map((one) =>
      startWriter(writer, { mode: 'write', writer: one, records }),
    )
    await Promise.all(workers.map((worker) => once(worker, 'exit')))
    await all
    expect(writer.stat()).toMatchObject({ usedBytes: 0, claims: 3 * records, aborts: 0 })
    expect(writer.stat().fulls).toBeGreaterThan(0)
  })

  it('may be terminated in the middle of claims: 60 rounds, and the ring goes on', async () => {
    const { writer, reader } = await pair()
    const seen = drain(reader, (_, sequence) => sequence === 999_999)
    for (let round = 0; round < 60; round++) {
      const worker = startWriter(writer, { mode: 'hold', writer: 1 })
      await once(worker, 'message')
      // Not at one place of its loop in every round.
      for (let turn = 0; turn < round % 7; turn++) await new Promise(setImmediate)
      await worker.terminate()
    }
    // What was open is aborted, so this record shows.
    const claim = await writer.claimAsync(64)
    claim!.commit(999_999)
    await seen
    await expect.poll(() => writer.stat().usedBytes).toBe(0)
    const { claimedPosition, committedPosition, poisoned } = writer.stat()
    expect([committedPosition, poisoned]).toEqual([claimedPosition, false])
    expect(writer.stat().aborts).toBeGreaterThan(0)
  }, 60_000)

  it('settle their claims after the maker has closed, and the memory stays until the last is gone', async () => {
    const { writer, reader } = await pair()
    const second = RingWriter.open(writer.share())
    const claim = second.claim(8)!
    writer.close()
    new Uint8Array(second.memory, claim.byteOffset, 8).fill(5)
    claim.commit(7)
    expect(reader.ended).toBe(false)
    const record = reader.next()!
    expect([record.batchSequence, [...new Uint8Array(record.payload)]]).toEqual([
      7,
      Array(8).fill(5),
    ])
    expect(() => second.claim(8)).toThrow(expect.objectContaining({ code: 'RING_CLOSED' }))
    second.close()
    expect(second.memory.byteLength).toBe(0)
    expect(reader.ended).toBe(true)
  })

  it('leave the ring open for the others when they close', () => {
    const writer = createWriter()
    const second = RingWriter.open(writer.share())
    const [kept] = [writer.claim(8)!, second.claim(8)]
    second.close()
    kept.commit(1)
    expect(writer.stat()).toMatchObject({ aborts: 1, claims: 2 })
    expect(writer.claim(8)).not.toBe(null)
  })

  it('are no makers: descriptors are not theirs, and a ring that is gone cannot be opened', () => {
    const writer = createWriter()
    const handle = writer.share()
    const second = RingWriter.open(structuredClone(handle))
    expect(second.id).toBe(writer.id)
    expect(second.memory.byteLength).toBe(4 * MIB)
    const notTheirs = expect.objectContaining({ code: 'RING_NOT_OWNER' })
    expect(() => second.descriptors()).toThrow(notTheirs)
    expect(() => second.closePeerDescriptors()).toThrow(notTheirs)
    second.close()
    writer.close()
    const closed = expect.objectContaining({ code: 'RING_CLOSED' })
    expect(() => RingWriter.open(handle)).toThrow(closed)
    expect(() => RingWriter.open({ ringId: 1n })).toThrow(closed)
  })

  it('all wake when space comes, though one of them alone reads the pipe', async () => {
    const { writer, reader } = await pair()
    const others = [1, 2, 3].map(() => RingWriter.open(writer.share()))
    onTestFinished(() => {
      for (const other of others) other.close()
    })
    for (let sequence = 0; ; sequence++) {
      const claim = writer.claim(400_000)
      if (!claim) break
      claim.commit(sequence)
    }
    const all = [writer, ...others].map((one) => one.claimAsync(400_000))
    let pending = all.length
    for (const one of all) one.then(() => pending--)
    for (let round = 0; pending > 0; round++) {
      expect(round).toBeLessThan(10_000)
      reader.next()?.release()
      await new Promise(setImmediate)
    }
    for (const claim of await Promise.all(all)) claim!.abort()
  })
})
