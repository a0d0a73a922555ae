// Which batch comes next when some wait in the ring and some came by the socket.
import type { RingReader, RingRecord } from '@fabric/shm-ring'
import { expect, test } from 'vitest'
import { Intake } from '../src/batches/intake.js'
import { encodeBatch } from './support/batches.js'

class FakeRing {
  readonly records: number[] = []
  readonly released: number[] = []
  isClosed = false
  pageSizeBytes = 4096

  next(): RingRecord | null {
    const batchSequence = this.records.shift()
    if (batchSequence === undefined) return null
    const record = {
      batchSequence,
      payload: batchOf(batchSequence),
      take: () => {},
      release: () => this.released.push(batchSequence),
    }
    return record as unknown as RingRecord
  }

  onReadable(): void {}

  close(): void {
    this.isClosed = true
  }
}

const batchOf = (batch: number) => encodeBatch({ batch, items: [{ tokens: [1] }] })
const numberOf = (buffer: ArrayBuffer) => Number(new DataView(buffer).getBigUint64(8, true))

function setUp() {
  const ring = new FakeRing()
  return { ring, intake: new Intake(ring as unknown as RingReader, () => {}) }
}

test('intake: ring and socket are merged in the order of batch numbers', () => {
  const { ring, intake } = setUp()
  ring.records.push(1, 4, 6)
  for (const batch of [2, 3, 5]) intake.push(batchOf(batch))
  const order = []
  for (let next = intake.next(); next !== null; next = intake.next())
    order.push(numberOf(next.buffer))
  expect(order).toEqual([1, 2, 3, 4, 5, 6])
})

test('intake: without a ring batches leave as they came', () => {
  const intake = new Intake(null, () => {})
  expect(intake.next()).toBeNull()
  for (const batch of [2, 1]) intake.push(batchOf(batch))
  expect(numberOf(intake.next()!.buffer)).toBe(2)
  expect(numberOf(intake.next()!.buffer)).toBe(1)
})

test('intake: after the end nothing is handed out, and the ring closes with the last batch in hand', () => {
  const { ring, intake } = setUp()
  ring.records.push(1, 2)
  const held = intake.next()
  intake.end()
  expect(intake.next()).toBeNull()
  expect(ring.isClosed).toBe(false)
  held?.release()
  expect(ring.released).toEqual([1])
  expect(ring.isClosed).toBe(true)
})

test('intake: releasing a batch of the socket ends its bytes', () => {
  const intake = new Intake(null, () => {})
  const bytes = batchOf(1)
  intake.push(bytes)
  intake.next()?.release()
  expect(bytes.byteLength).toBe(0)
})
