// An append as it stands in the log: accepted items, or settlements. A header names its blocks, then come
// the blocks, each padded to 8.
// The blocks check themselves; the header carries their checksums, so that one whose bytes are those of
// an older file is not taken for its own. Its own checksum begins with the store's secret hashKey: a
// recovery looks for headers among bytes that producers have made.
//
// Little-endian: u32 magic, u32 crc32 of the store's hashKey and the rest of the header, u32 bytes of the header, u32 kind (1:
// accepted items, 2: blocks moved from an older segment, which a recovery skips, 3: settlements, which are
// one block of their own kind, settled-columns.ts), u32 job, u32 blocks,
// f64 offset in the segment of the first append of its write, f64 bytes of all of it; then for each block: u32 bytes, u32
// crc32, u32 model, u32 length rounded up to 8, u32 count, u32 flags (1: some item has a deadline), f64 first
// sequence, f64 tokens of its items.
import { crc32 } from 'node:zlib'
import type { DiskShape } from './store.js'

const MAGIC = 0x31505041 // APP1
const FIXED_BYTES = 40
/** Of what each header begins with. */
export const APPEND_HEADER_BYTES_MIN = FIXED_BYTES
const BLOCK_BYTES = 40
const HAVE_DEADLINE = 1

export type AppendKind = 'accepted' | 'moved' | 'settled'
const KINDS: readonly AppendKind[] = ['accepted', 'moved', 'settled']

export interface LoggedBlock {
  readonly shape: DiskShape
  readonly count: number
  readonly tokens: number
  readonly haveDeadline: boolean
  readonly firstSequence: number
  /** From the begin of the append. */
  readonly at: number
  readonly bytes: number
  readonly crc: number
}

export interface AppendHeader {
  readonly kind: AppendKind
  readonly job: number
  /** Where the write begins that it was written with: those appends share a sync. */
  readonly writeStart: number
  /** Header, blocks and padding. */
  readonly bytes: number
  readonly blocks: readonly LoggedBlock[]
}

export const align8 = (bytes: number): number => (bytes + 7) & ~7

export const appendHeaderBytes = (blocks: number): number => FIXED_BYTES + BLOCK_BYTES * blocks

/** Writes it to the begin of `bytes`. @param size of all of the append. */
export function writeAppendHeader(
  bytes: Buffer,
  hashKey: Buffer,
  kind: AppendKind,
  job: number,
  writeStart: number,
  blocks: readonly LoggedBlock[],
  size: number,
): void {
  const headerBytes = appendHeaderBytes(blocks.length)
  bytes.writeUInt32LE(MAGIC, 0)
  bytes.writeUInt32LE(headerBytes, 8)
  bytes.writeUInt32LE(KINDS.indexOf(kind) + 1, 12)
  bytes.writeUInt32LE(job, 16)
  bytes.writeUInt32LE(blocks.length, 20)
  bytes.writeDoubleLE(writeStart, 24)
  bytes.writeDoubleLE(size, 32)
  blocks.forEach((block, index) => {
    const at = FIXED_BYTES + BLOCK_BYTES * index
    bytes.writeUInt32LE(block.bytes, at)
    bytes.writeUInt32LE(block.crc, at + 4)
    bytes.writeUInt32LE(block.shape.model, at + 8)
    bytes.writeUInt32LE(block.shape.paddedLength, at + 12)
    bytes.writeUInt32LE(block.count, at + 16)
    bytes.writeUInt32LE(block.haveDeadline ? HAVE_DEADLINE : 0, at + 20)
    bytes.writeDoubleLE(block.firstSequence, at + 24)
    bytes.writeDoubleLE(block.tokens, at + 32)
  })
  bytes.writeUInt32LE(crc32(bytes.subarray(8, headerBytes), crc32(hashKey)), 4)
}

/** What the header says of its own length, of which the fixed part is there. null: no append begins there. */
export function appendHeaderBytesAt(bytes: Buffer, from: number): number | null {
  if (from + FIXED_BYTES > bytes.byteLength || bytes.readUInt32LE(from) !== MAGIC) return null
  const headerBytes = bytes.readUInt32LE(from + 8)
  return headerBytes === appendHeaderBytes(bytes.readUInt32LE(from + 20)) ? headerBytes : null
}

/** Of what begins in `bytes` at `from`. null: no append begins there, or its header is not whole. */
export function readAppendHeader(
  bytes: Buffer,
  hashKey: Buffer,
  from: number,
): AppendHeader | null {
  const headerBytes = appendHeaderBytesAt(bytes, from)
  if (headerBytes === null || from + headerBytes > bytes.byteLength) return null
  const crc = crc32(bytes.subarray(from + 8, from + headerBytes), crc32(hashKey))
  if (bytes.readUInt32LE(from + 4) !== crc) return null
  const blocks: LoggedBlock[] = []
  let next = headerBytes
  for (let at = from + FIXED_BYTES; at < from + headerBytes; at += BLOCK_BYTES) {
    const size = bytes.readUInt32LE(at)
    const shape = {
      model: bytes.readUInt32LE(at + 8),
      paddedLength: bytes.readUInt32LE(at + 12),
    }
    blocks.push({
      shape,
      count: bytes.readUInt32LE(at + 16),
      tokens: bytes.readDoubleLE(at + 32),
      haveDeadline: (bytes.readUInt32LE(at + 20) & HAVE_DEADLINE) !== 0,
      firstSequence: bytes.readDoubleLE(at + 24),
      at: next,
      bytes: size,
      crc: bytes.readUInt32LE(at + 4),
    })
    next += align8(size)
  }
  return {
    kind: KINDS[bytes.readUInt32LE(from + 12) - 1],
    job: bytes.readUInt32LE(from + 16),
    writeStart: bytes.readDoubleLE(from + 24),
    bytes: bytes.readDoubleLE(from + 32),
    blocks,
  }
}
