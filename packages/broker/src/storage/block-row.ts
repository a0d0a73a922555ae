// The row of a block in the index: where its bytes stand in the log, and what of it is settled. Small,
// rewritten as its items settle, removed with the last of them. It also knows what is left, so that a
// block that cannot be read can be counted.
//
// Little-endian: u32 crc32 of all that follows it, u32 count, u32 items left, u32 flags (1: some item has a
// deadline, so that a start finds those without reading every block), f64 tokens left, f64 offset in the
// segment, u32 segment, u32 bytes of the block, then one bit per item, set when it is settled, in u32 words.
import { crc32 } from 'node:zlib'

const HEADER_BYTES = 40
const HAVE_DEADLINE = 1

/** Bytes of a segment of the log. */
export interface BlockPlace {
  readonly segment: number
  readonly offset: number
  readonly bytes: number
}

export class BlockRow {
  private constructor(
    readonly count: number,
    public itemsLeft: number,
    public tokensLeft: number,
    readonly haveDeadline: boolean,
    readonly place: BlockPlace,
    private readonly bits: Uint32Array,
  ) {}

  static of(count: number, tokens: number, haveDeadline: boolean, place: BlockPlace): BlockRow {
    const bits = new Uint32Array(Math.ceil(count / 32))
    return new BlockRow(count, count, tokens, haveDeadline, place, bits)
  }

  /** The same block at another place. */
  movedTo(place: BlockPlace): BlockRow {
    const { count, itemsLeft, tokensLeft, haveDeadline, bits } = this
    return new BlockRow(count, itemsLeft, tokensLeft, haveDeadline, place, bits)
  }

  isSettled(row: number): boolean {
    return (this.bits[row >>> 5] & (1 << (row & 31))) !== 0
  }

  settle(row: number, tokens: number): void {
    this.bits[row >>> 5] |= 1 << (row & 31)
    this.itemsLeft -= 1
    this.tokensLeft -= tokens
  }

  /** Settled items by the bits, which must be `count - itemsLeft`. */
  settledBits(): number {
    let settled = 0
    for (let row = 0; row < this.count; row++) if (this.isSettled(row)) settled += 1
    return settled
  }

  encode(): Buffer {
    const bytes = Buffer.allocUnsafe(HEADER_BYTES + this.bits.byteLength)
    bytes.writeUInt32LE(this.count, 4)
    bytes.writeUInt32LE(this.itemsLeft, 8)
    bytes.writeUInt32LE(this.haveDeadline ? HAVE_DEADLINE : 0, 12)
    bytes.writeDoubleLE(this.tokensLeft, 16)
    bytes.writeDoubleLE(this.place.offset, 24)
    bytes.writeUInt32LE(this.place.segment, 32)
    bytes.writeUInt32LE(this.place.bytes, 36)
    for (let i = 0; i < this.bits.length; i++)
      bytes.writeUInt32LE(this.bits[i], HEADER_BYTES + 4 * i)
    bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0)
    return bytes
  }

  /** null: damaged. */
  static decode(bytes: Buffer): BlockRow | null {
    if (bytes.byteLength < HEADER_BYTES) return null
    if (bytes.readUInt32LE(0) !== crc32(bytes.subarray(4))) return null
    const count = bytes.readUInt32LE(4)
    const bits = new Uint32Array(Math.ceil(count / 32))
    if (bytes.byteLength !== HEADER_BYTES + bits.byteLength) return null
    for (let i = 0; i < bits.length; i++) bits[i] = bytes.readUInt32LE(HEADER_BYTES + 4 * i)
    const place = {
      segment: bytes.readUInt32LE(32),
      offset: bytes.readDoubleLE(24),
      bytes: bytes.readUInt32LE(36),
    }
    const haveDeadline = (bytes.readUInt32LE(12) & HAVE_DEADLINE) !== 0
    return new BlockRow(
      count,
      bytes.readUInt32LE(8),
      bytes.readDoubleLE(16),
      haveDeadline,
      place,
      bits,
    )
  }
}
