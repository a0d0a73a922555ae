// The bytes of docs/disk-format.md: a change of them is a new format version.
import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  appendHeaderBytes,
  type LoggedBlock,
  readAppendHeader,
  writeAppendHeader,
} from '../../src/storage/append-header.ts'
import { BlockRow } from '../../src/storage/block-row.ts'
import {
  decodeBlock,
  decodeHead,
  encodeBlock,
  headBytes,
  type ItemColumns,
  nextBlock,
  rowOf,
} from '../../src/storage/item-block.ts'
import { decodeJob, encodeJob } from '../../src/storage/job-row.ts'
import { blockKey, keyBehind, placeOf, resultKey } from '../../src/storage/layout.ts'
import { decodeChunk, readRecord, sealChunk, writeRecord } from '../../src/storage/result-chunk.ts'
import { blockOf, columnsOf, item, job, settled } from './support/items.ts'

const SHAPE = { model: 2, paddedLength: 16 }
const PLACE = { segment: 2, offset: 256, bytes: 16 }
const HASH_KEY = Buffer.from('0123456789abcdef')
const encoded = (columns: ItemColumns, rows: number[], acceptedAtMs = 0) => {
  const extent = nextBlock(columns, rows, 0)
  const buffer = new ArrayBuffer(8 * Math.ceil(extent.bytes / 8))
  const crc = encodeBlock(columns, rows, 0, extent, acceptedAtMs, buffer, 0)
  const bytes = Buffer.from(buffer, 0, extent.bytes)
  expect(bytes.readUInt32LE(4)).toBe(crc)
  return bytes
}
const turned = (bytes: Buffer, bit: number) => {
  const copy = Buffer.from(bytes)
  copy[bit >>> 3] ^= 1 << (bit & 7)
  return copy
}

describe('disk format 2', () => {
  test('keys are big-endian, so that blocks of a shape stand in order of sequence', () => {
    expect(blockKey(1, SHAPE, 2 ** 33 + 5).toString('hex')).toBe(
      '00000001000000020000001000000002' + '00000005',
    )
    expect(placeOf(blockKey(7, SHAPE, 2 ** 40))).toEqual({
      job: 7,
      ...SHAPE,
      firstSequence: 2 ** 40,
    })
    expect(blockKey(1, SHAPE, 255).compare(blockKey(1, SHAPE, 256))).toBe(-1)
    expect(resultKey(1, 300).toString('hex')).toBe('00000001000000000000012c')
    expect(keyBehind(Buffer.from('01ff', 'hex')).toString('hex')).toBe('0200')
  })

  test('a block', () => {
    const items = [
      item('a', 9, { model: 2 }),
      item('bc', 10, { model: 2, payload: Uint8Array.of(5, 6) }),
    ]
    const columns = columnsOf(blockOf(1, items), Float64Array.of(1000, 1003))
    const bytes = encoded(columns, [0, 1], 1.5)
    const words = new Uint32Array(new Uint8Array(bytes).buffer.slice(0, 48))
    expect([words[0], ...words.slice(2, 7)]).toEqual([0x42494631, 2, 1, 3, 9, 2])
    const head = Buffer.from(bytes.subarray(8, 48 + 8 * 2))
    head.writeUInt32LE(0, 28 - 8)
    expect(words[7]).toBe(crc32(head))
    expect([bytes.readDoubleLE(32), bytes.readDoubleLE(40)]).toEqual([1.5, 1000])
    expect(bytes.length).toBe(48 + 4 * 2 * 4 + 4 * 9 + 2 + 3)
    expect(bytes.toString('latin1', bytes.length - 3)).toBe('abc')
    const block = decodeBlock(new Uint8Array(bytes))!
    expect(Array.from(block.lengths)).toEqual([9, 10])
    expect([rowOf(block, 1000), rowOf(block, 1001), rowOf(block, 1003)]).toEqual([0, -1, 1])
    for (let bit = 0; bit < 8 * bytes.length; bit++)
      expect(decodeBlock(new Uint8Array(turned(bytes, bit)))).toBeNull()
    for (let length = 0; length < bytes.length; length++)
      expect(decodeBlock(new Uint8Array(bytes.subarray(0, length)))).toBeNull()
  })

  test('the head of a block, read alone, is what the block says, and refuses a bit that turned', () => {
    const items = [item('a', 9), item('bc', 10), item('d', 11)]
    const columns = columnsOf(blockOf(1, items), Float64Array.of(4, 6, 7))
    const bytes = encoded(columns, [0, 1, 2])
    const head = bytes.subarray(0, headBytes(3))
    const block = decodeBlock(new Uint8Array(bytes))!
    expect(decodeHead(new Uint8Array(head))).toMatchObject({
      count: 3,
      firstSequence: 4,
      lengths: block.lengths,
      sequenceDeltas: block.sequenceDeltas,
    })
    for (let bit = 0; bit < 8 * head.length; bit++)
      if (bit < 8 * 4 || bit >= 8 * 8)
        expect(decodeHead(new Uint8Array(turned(head, bit)))).toBeNull()
    for (const length of [0, 47, head.length - 8, head.length - 1])
      expect(decodeHead(new Uint8Array(head.subarray(0, length)))).toBeNull()
    const without = Buffer.from(head)
    without.writeUInt32LE(0, 28)
    expect(decodeHead(new Uint8Array(without))).toBeNull()
  })

  test('a block is the same whether its rows stand side by side or between those of others', () => {
    const some = (ids: string[]) => ids.map((id, i) => item(id, 9 + i, { seed: i }))
    const side = columnsOf(blockOf(1, some(['a', 'bc', 'd'])), Float64Array.of(4, 6, 7))
    const [a, bc, d] = some(['a', 'bc', 'd'])
    const apart = [item('x', 3), a, item('y', 2), bc, d]
    const between = columnsOf(blockOf(1, apart), Float64Array.of(3, 4, 5, 6, 7))
    expect(nextBlock(side, [0, 1, 2], 0).isContiguous).toBe(true)
    expect(nextBlock(between, [1, 3, 4], 0).isContiguous).toBe(false)
    expect(encoded(between, [1, 3, 4])).toEqual(encoded(side, [0, 1, 2]))
    expect(encoded(side, [1, 2])).toEqual(encoded(between, [3, 4]))
  })

  test('the checksum of a block is the CRC-32 of its bytes, though its tokens are not read for it', () => {
    const lengths = Array.from({ length: 700 }, (_, i) => 1 + ((i * 7919) % 400))
    const items = lengths.map((length, i) => item(`i${i}`, length, { seed: i * 31 }))
    const sequences = Float64Array.from(items, (_, i) => i + 1)
    const columns = columnsOf(blockOf(1, items), sequences)
    for (const rows of [[0], [3, 4, 5, 6], [9, 2, 300, 301], items.map((_, i) => i)])
      expect(decodeBlock(new Uint8Array(encoded(columns, rows)))).not.toBeNull()
  })

  test('a block takes at most 1,024 items and 64 KiB, but one item whatever its size', () => {
    const rowsOf = (count: number, length: number) => {
      const items = Array.from({ length: count }, (_, i) => item(`${i}`, length))
      const sequences = Float64Array.from(items, (_, i) => i + 1)
      const columns = columnsOf(blockOf(1, items), sequences)
      const rows = items.map((_, i) => i)
      return [nextBlock(columns, rows, 0).count, encoded(columns, rows).length]
    }
    expect(rowsOf(2000, 1)[0]).toBe(1024)
    const [count, bytes] = rowsOf(200, 256)
    expect(bytes).toBeLessThanOrEqual(65_536)
    expect(bytes + 1200).toBeGreaterThan(65_536)
    expect(count).toBeLessThan(200)
    expect(rowsOf(2, 40_000)[0]).toBe(1)
  })

  test('a block with deadlines has a column more, and one without has none', () => {
    const block = (deadlineMs: Int32Array) => ({
      ...blockOf(1, [item('a', 9), item('b', 9)]),
      deadlineMs,
    })
    const write = (deadlineMs: Int32Array) => {
      return encoded(columnsOf(block(deadlineMs), Float64Array.of(1, 2)), [0, 1], 1.5)
    }
    const bytes = write(Int32Array.of(0, 700))
    expect(bytes.readUInt32LE(12)).toBe(2)
    expect([bytes.readInt32LE(48 + 4 * 6), bytes.readInt32LE(48 + 4 * 7)]).toEqual([0, 700])
    expect(Array.from(decodeBlock(new Uint8Array(bytes))!.deadlineMs!)).toEqual([0, 700])
    expect(write(Int32Array.of(0, 0)).length).toBe(bytes.length - 8)
    expect(BlockRow.decode(BlockRow.of(2, 18, true, PLACE).encode())!.haveDeadline).toBe(true)
  })

  test('the row of a block', () => {
    const row = BlockRow.of(40, 100, false, PLACE)
    row.settle(0, 7)
    row.settle(33, 3)
    const bytes = row.encode()
    expect(bytes.subarray(4).toString('hex')).toBe(
      '28000000' +
        '26000000' +
        '00000000' +
        '0000000000805640' +
        '0000000000007040' +
        '02000000' +
        '10000000' +
        '01000000' +
        '02000000',
    )
    const read = BlockRow.decode(bytes)!
    expect(read.place).toEqual(PLACE)
    expect(BlockRow.decode(read.movedTo({ ...PLACE, segment: 9 }).encode())).toMatchObject({
      itemsLeft: 38,
      place: { segment: 9, offset: 256 },
    })
    expect([read.isSettled(0), read.isSettled(1), read.isSettled(33)]).toEqual([true, false, true])
    expect([read.itemsLeft, read.tokensLeft, read.settledBits()]).toEqual([38, 90, 2])
    for (let bit = 0; bit < 8 * bytes.length; bit++)
      expect(BlockRow.decode(turned(bytes, bit))).toBeNull()
  })

  test('the header of an append', () => {
    const block = (at: number): LoggedBlock => ({
      shape: SHAPE,
      count: 3,
      tokens: 40,
      haveDeadline: true,
      firstSequence: 2 ** 33,
      at,
      bytes: 13,
      crc: 7,
    })
    const headerBytes = appendHeaderBytes(2)
    const blocks = [block(headerBytes), block(headerBytes + 16)]
    const bytes = Buffer.alloc(headerBytes + 32)
    writeAppendHeader(bytes, HASH_KEY, 'moved', 5, 4096, blocks, bytes.length)
    expect([bytes.readUInt32LE(0), bytes.readUInt32LE(8)]).toEqual([0x31505041, headerBytes])
    expect(readAppendHeader(bytes, HASH_KEY, 0)).toEqual({
      kind: 'moved',
      job: 5,
      writeStart: 4096,
      bytes: headerBytes + 32,
      blocks,
    })
    for (let bit = 0; bit < 8 * headerBytes; bit++)
      expect(readAppendHeader(turned(bytes, bit), HASH_KEY, 0)).toBeNull()
    for (let length = 0; length < headerBytes; length++)
      expect(readAppendHeader(bytes.subarray(0, length), HASH_KEY, 0)).toBeNull()
    // One that a producer has made up does not know the key.
    expect(readAppendHeader(bytes, Buffer.from('0123456789abcdeg'), 0)).toBeNull()
  })

  test('a chunk of results', () => {
    const { record } = settled(1, 1, item('id', 1), 'value')
    const memory = new ArrayBuffer(16 + 32)
    const bytes = Buffer.from(memory)
    expect(writeRecord(new Uint32Array(memory), bytes, 16, record)).toBe(32)
    sealChunk(bytes, 1, 300)
    expect(bytes.subarray(4).toString('hex')).toBe(
      `01000000${'0000000000c07240'}20000000${'02000000'}05000000${'01000000'}00000000${'0001'}0000${Buffer.from('valueid').toString('hex')}00`,
    )
    const chunk = decodeChunk(bytes)!
    expect(chunk).toMatchObject({ firstOffset: 300, count: 1 })
    expect(readRecord(chunk.bytes, chunk.starts[0])).toEqual({
      ...record,
      id: expect.anything(),
      value: expect.anything(),
    })
    for (let bit = 0; bit < 8 * bytes.length; bit++)
      expect(decodeChunk(turned(bytes, bit))).toBeNull()
  })

  test('a job, and a deleted one', () => {
    expect(decodeJob(encodeJob(job(3)))).toEqual(job(3))
    expect(decodeJob(encodeJob(null))).toBeNull()
    expect(decodeJob(turned(encodeJob(job(3)), 100))).toBe('damaged')
  })
})
