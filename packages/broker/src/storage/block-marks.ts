// What of a block is settled: one small row beside each block, rewritten as its items settle and
// removed with the block. It also knows what is left, so that a damaged block can be counted.
//
// Little-endian: u32 crc32 of all that follows it, u32 count, u32 items left, u32 flags (1: some item has a
// deadline, so that a start finds those without reading every block), f64 tokens
// left, then one bit per item, set when it is settled, in u32 words.
import { crc32 } from 'node:zlib'

const HEADER_BYTES = 24

export class BlockMarks {
  private constructor(
    readonly count: number,
    public itemsLeft: number,
    public tokensLeft: number,
    readonly haveDeadline: boolean,
    private readonly bits: Uint32Array,
  ) {}

  static of(count: number, tokens: number, haveDeadline = false): BlockMarks {
    const bits = new Uint32Array(Math.ceil(count / 32))
    return new BlockMarks(count, count, tokens, haveDeadline, bits)
  }

  isSettled(row: number): boolean {
    return (this.bits[row >>> 5] & (1 << (row & 31))) !== 0
  }

  settle(row: number, tokens: number): void {
    this.bits[row >>> 5] |= 1 << (row & 31)
    this.itemsLeft -= 1
    this.tokensLeft -= tokens
  }

  /** Settled rows by the bits, which must be `count - itemsLeft`. */
  settledBits(): number {
    let settled = 0
    for (let row = 0; row < this.count; row++) if (this.isSettled(row)) settled += 1
    return settled
  }

  encode(): Buffer {
    const bytes = Buffer.allocUnsafe(HEADER_BYTES + this.bits.byteLength)
    bytes.writeUInt32LE(this.count, 4)
    bytes.writeUInt32LE(this.itemsLeft, 8)
    bytes.writeUInt32LE(Number(this.haveDeadline), 12)
    bytes.writeDoubleLE(this.tokensLeft, 16)
    for (let i = 0; i < this.bits.length; i++)
      bytes.writeUInt32LE(this.bits[i], HEADER_BYTES + 4 * i)
    bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0)
    return bytes
  }

  /** null: damaged. */
  static decode(bytes: Buffer): BlockMarks | null {
    if (bytes.byteLength < HEADER_BYTES) return null
    if (bytes.readUInt32LE(0) !== crc32(bytes.subarray(4))) return null
    const count = bytes.readUInt32LE(4)
    const bits = new Uint32Array(Math.ceil(count / 32))
    if (bytes.byteLength !== HEADER_BYTES + bits.byteLength) return null
    for (let i = 0; i < bits.length; i++) bits[i] = bytes.readUInt32LE(HEADER_BYTES + 4 * i)
    const haveDeadline = (bytes.readUInt32LE(12) & 1) !== 0
    return new BlockMarks(count, bytes.readUInt32LE(8), bytes.readDoubleLE(16), haveDeadline, bits)
  }
}
