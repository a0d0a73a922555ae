// The parts that the rules stand on: ordered set, heap, id index, digests, slabs, arena, item table.

import { expect, it } from 'vitest'
import { Arena, SEGMENT_BYTES } from '../src/arena.js'
import { CHUNK_ROWS } from '../src/columns.js'
import { bodyDigest, IdHash } from '../src/hash.js'
import { Heap } from '../src/heap.js'
import { IdBlocks } from '../src/id-blocks.js'
import { ID_OTHER_BODY, ID_SAME_BODY, ID_UNKNOWN, IdIndex } from '../src/id-index.js'
import { Items } from '../src/items.js'
import { OrderedSet } from '../src/ordered-set.js'
import { type Piece, Slabs } from '../src/slabs.js'
import { Timers } from '../src/timers.js'
import { Random } from './random.js'

it('S13: the ordered set finds the next and the previous member as a sorted list does', () => {
  for (const width of [40, 5000, 2 ** 31]) {
    const random = new Random(width)
    const set = new OrderedSet()
    const list = new Set<number>()
    for (let i = 0; i < 1000; i++) {
      const key = random.int(0, width)
      if (random.chance(0.6)) {
        set.add(key)
        list.add(key)
      } else {
        const gone = random.chance(0.5) ? key : ([...list][0] ?? key)
        set.remove(gone)
        list.delete(gone)
      }
      const probe = random.int(0, width)
      const sorted = [...list].sort((a, b) => a - b)
      expect(set.next(probe)).toBe(sorted.find((one) => one >= probe) ?? -1)
      expect(set.previous(probe)).toBe(sorted.findLast((one) => one <= probe) ?? -1)
      expect(set.has(probe)).toBe(list.has(probe))
      expect(set.isEmpty()).toBe(list.size === 0)
    }
  }
})

it('S11: the heap gives handles in order, also after moves and removals', () => {
  const random = new Random(3)
  const heap = new Heap()
  const keys = new Map<number, number>()
  for (let i = 0; i < 2000; i++) {
    const handle = random.int(0, 200)
    if (random.chance(0.7)) {
      const first = random.int(0, 20)
      heap.set(handle, first, handle)
      keys.set(handle, first)
    } else {
      heap.remove(handle)
      keys.delete(handle)
    }
    const least = [...keys].sort((a, b) => a[1] - b[1] || a[0] - b[0])[0]
    expect(heap.top()).toBe(least === undefined ? -1 : least[0])
    expect(heap.size).toBe(keys.size)
  }
})

it('timers: of equal times the one set first fires first', () => {
  const timers = new Timers()
  const handles = [5, 3, 9, 1].map((ref) => timers.open(0, ref))
  for (const handle of handles) timers.set(handle, 100)
  timers.set(handles[0], 100)
  expect(timers.takeDue(99)).toBe(-1)
  const refs = handles.map(() => timers.ref(timers.takeDue(100)))
  expect(refs).toEqual([3, 9, 1, 5])
})

it('S36: the id index knows what was put into it, and nothing else', () => {
  const index = new IdIndex(new IdBlocks())
  const random = new Random(11)
  const ids = Array.from({ length: 60_000 }, () => [
    Math.floor(random.next() * 2 ** 32),
    Math.floor(random.next() * 2 ** 32),
    random.int(0, 5),
  ])
  for (const [high, low, body] of ids) {
    if (index.lookup(high, low, body) === ID_UNKNOWN) index.insert(high, low, body)
  }
  const answers = new Set(
    ids.map(([high, low, body]) =>
      [
        index.lookup(high, low, body),
        index.lookup(high, low, body + 1),
        index.lookup(high, (low ^ 1) >>> 0, body),
      ].join(),
    ),
  )
  expect([...answers]).toEqual([[ID_SAME_BODY, ID_OTHER_BODY, ID_UNKNOWN].join()])
})

it('S36: ids whose digests share their leading bits do not overfill one bucket', () => {
  const index = new IdIndex(new IdBlocks())
  const low = (i: number) => Math.imul(i, 0x9e3779b1) >>> 0
  for (let i = 1; i <= 20_000; i++) index.insert(0xabcd0000 + (i >>> 2), low(i), 0)
  let known = 0
  for (let i = 1; i <= 20_000; i++) {
    known += Number(index.lookup(0xabcd0000 + (i >>> 2), low(i), 0) === ID_SAME_BODY)
  }
  expect(known).toBe(20_000)
})

it('S36: id digests are HalfSipHash-2-4 with 64 bits (published vectors)', () => {
  // Key 00 01 … 07; messages of 0, 1, 2 … bytes 00 01 02 …; output as two little-endian words.
  const hash = new IdHash(0x03020100 + 0x07060504 * 2 ** 32)
  const message = Uint8Array.from({ length: 8 }, (_, i) => i)
  const digests = [0, 1, 8].map((length) => {
    hash.digest(message, 0, length)
    return [hash.low, hash.high]
  })
  expect(digests).toEqual([
    [0x591f8d21, 0xc83cb8b9],
    [0x122455be, 0x157338f8],
    [0x20e8feed, 0x8c85e4bc],
  ])
})

it('S36: the body digest sees each of its parts', () => {
  const tokens = Int32Array.from({ length: 23 }, (_, i) => i)
  const payload = Uint8Array.of(1, 2, 3)
  const digest = (model = 1, length = 23, to = 23, data: Uint8Array | null = payload, end = 3) =>
    bodyDigest(7, model, length, tokens, 0, to, data, 0, end)
  const seen = new Set([
    digest(),
    digest(2),
    digest(1, 22),
    digest(1, 23, 22),
    digest(1, 23, 23, Uint8Array.of(1, 2, 4)),
    digest(1, 23, 23, payload, 2),
    digest(1, 23, 23, null, 0),
  ])
  for (let i = 0; i < 23; i++) {
    tokens[i] ^= 1
    seen.add(digest())
    tokens[i] ^= 1
  }
  expect(seen.size).toBe(7 + 23)
})

it('arena: records are 4-byte aligned, never straddle, and empty segments go back', () => {
  const arena = new Arena(new Slabs(SEGMENT_BYTES, SEGMENT_BYTES))
  const random = new Random(5)
  const rows: number[] = []
  for (let i = 0; i < 2000; i++) {
    const bytes = random.int(1, 50_000)
    const segment = arena.claim(bytes)
    expect(arena.claimedAt % 4).toBe(0)
    expect(arena.claimedAt + bytes).toBeLessThanOrEqual(segment.byteLength)
    rows.push(segment.row)
  }
  expect(arena.allocatedBytes()).toBeGreaterThan(40_000_000)
  for (const row of rows) arena.release(row)
  expect(arena.allocatedBytes()).toBe(SEGMENT_BYTES)
})

it('arena: a record larger than a segment gets one of its own', () => {
  const arena = new Arena(new Slabs(SEGMENT_BYTES, SEGMENT_BYTES))
  const { row, byteLength, bytes } = arena.claim(SEGMENT_BYTES + 5)
  expect(byteLength).toBe(SEGMENT_BYTES + 8)
  expect(bytes.byteLength).toBe(byteLength)
  arena.release(row)
  expect(arena.allocatedBytes()).toBe(SEGMENT_BYTES)
})

it('items: slots are used anew, lowest chunk first, sequence numbers never', () => {
  const items = new Items()
  const alloc = () => {
    const slot = items.alloc()
    items.segment.set(slot, items.arena.claim(4).row)
    return slot
  }
  const slots = Array.from({ length: 3 * CHUNK_ROWS }, alloc)
  expect(new Set(slots).size).toBe(slots.length)
  const last = items.sequence.get(slots[5])
  items.free(slots[5])
  items.free(slots[CHUNK_ROWS + 1])
  expect(alloc()).toBe(slots[5])
  expect(items.sequence.get(slots[5])).toBeGreaterThan(last)
  expect(alloc()).toBe(slots[CHUNK_ROWS + 1])
  for (const slot of slots) items.free(slot)
  let rows = 0
  items.forEach(() => {
    rows++
  })
  expect(rows).toBe(0)
  expect(alloc()).toBeLessThan(CHUNK_ROWS)
})

it('slabs: pieces do not overlap, a slab that is empty goes back, the first one stays', () => {
  const unit = 64 * 1024
  const slabs = new Slabs(unit, 20 * unit)
  const random = new Random(3)
  const pieces: Piece[] = []
  const stamps = new Map<Piece, number>()
  for (let i = 0; i < 3000; i++) {
    const isTaken = pieces.length > 0 && random.int(0, 2) === 0
    if (isTaken) {
      const [piece] = pieces.splice(random.int(0, pieces.length - 1), 1)
      const bytes = new Uint32Array(piece.buffer, piece.byteOffset, (piece.units * unit) / 4)
      expect([bytes[0], bytes.at(-1)]).toEqual([stamps.get(piece), stamps.get(piece)])
      slabs.give(piece)
    } else {
      const piece = slabs.take(random.int(1, 20) * unit)
      const bytes = new Uint32Array(piece.buffer, piece.byteOffset, (piece.units * unit) / 4)
      bytes[0] = i
      bytes[bytes.length - 1] = i
      stamps.set(piece, i)
      pieces.push(piece)
    }
  }
  expect(slabs.isGrown).toBe(true)
  for (const piece of pieces) slabs.give(piece)
  expect(slabs.usedBytes).toBe(0)
  expect(slabs.isGrown).toBe(false)
  expect(slabs.reservedBytes).toBe(20 * unit)
})

it('slabs: a slab with little of it touched is kept, so that its edge costs no mapping', () => {
  const unit = 64 * 1024
  const slabs = new Slabs(unit, unit)
  const first = slabs.take(unit)
  const { buffer, ...edge } = slabs.take(unit)
  slabs.give({ buffer, ...edge })
  expect(slabs.take(unit).buffer).toBe(buffer)
  slabs.give(first)
  expect(slabs.take(unit).buffer).toBe(first.buffer)
})
