// Digests of ids and bodies as they stand on disk (S36); they never change within a format version.
//
// An id's is keyed, since ids come from outside: HalfSipHash-2-4 with four key words and four output
// words. A body is only compared with the body of the same id, so its CRC-32 is enough.
import { crc32Rows } from '@fabric/shm-ring'

export const DIGEST_KEY_BYTES = 16

export class IdDigest {
  /** The digest of the last id. */
  readonly words = new Uint32Array(4)
  readonly #key: Uint32Array

  constructor(key: Buffer) {
    this.#key = Uint32Array.from([0, 4, 8, 12], (at) => key.readUInt32LE(at))
  }

  digest(bytes: Uint8Array, from: number, to: number): void {
    let v0 = this.#key[0] | 0
    let v1 = this.#key[1] ^ 0xee
    let v2 = this.#key[2] ^ 0x6c796765
    let v3 = this.#key[3] ^ 0x74656462
    const blocks = ((to - from) >>> 2) + 1
    for (let block = 0; block < blocks + 4; block++) {
      const word = block < blocks ? messageWord(bytes, from, to, block) : 0
      if (block < blocks) v3 ^= word
      else v2 ^= 0xee + block - blocks
      for (let round = block < blocks ? 2 : 4; round > 0; round--) {
        v0 = (v0 + v1) | 0
        v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
        v0 = (v0 << 16) | (v0 >>> 16)
        v2 = (v2 + v3) | 0
        v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
        v0 = (v0 + v3) | 0
        v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
        v2 = (v2 + v1) | 0
        v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
        v2 = (v2 << 16) | (v2 >>> 16)
      }
      v0 ^= word
      if (block >= blocks) this.words[block - blocks] = v1 ^ v3
    }
  }
}

/** Block `block` of a message, little-endian; the last one holds the rest and the length. */
function messageWord(bytes: Uint8Array, from: number, to: number, block: number): number {
  const at = from + block * 4
  if (at + 4 <= to)
    return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
  let word = (to - from) << 24
  for (let i = at; i < to; i++) word |= bytes[i] << ((i - at) * 8)
  return word
}

/** Columns of a submission, or of a block. An item with a payload has no tokens. */
export interface Bodies {
  readonly count: number
  readonly model: Int32Array
  readonly lengths: Int32Array
  readonly tokens: Int32Array
  readonly tokenStarts: Uint32Array
  readonly payloads: Uint8Array | null
  readonly payloadEnds: Uint32Array | null
}

const bytesOf = (words: Int32Array) =>
  new Uint8Array(words.buffer, words.byteOffset, words.byteLength)

/** Digests of many bodies at once. */
export class BodyDigests {
  /** Model and length, with which a digest begins. */
  #heads = new Int32Array(0)
  #headStarts = new Uint32Array(0)
  #headBytes = new Uint32Array(0)
  #starts = new Uint32Array(0)
  #bytes = new Uint32Array(0)
  #digests = new Uint32Array(0)

  /** By item, until the next call: of model, length, and the bytes of the tokens or of the payload. */
  of(bodies: Bodies): Uint32Array {
    const { count, model, lengths, tokens, tokenStarts, payloads, payloadEnds } = bodies
    this.#growTo(count)
    const [starts, bytes, digests] = [this.#starts, this.#bytes, this.#digests]
    for (let i = 0; i < count; i++) {
      this.#heads[2 * i] = model[i]
      this.#heads[2 * i + 1] = lengths[i]
      digests[i] = 0
      starts[i] = 4 * tokenStarts[i]
      bytes[i] = payloadBytes(payloadEnds, i) > 0 ? 0 : 4 * lengths[i]
    }
    crc32Rows(bytesOf(this.#heads), this.#headStarts, this.#headBytes, digests, count)
    crc32Rows(bytesOf(tokens), starts, bytes, digests, count)
    if (payloads === null || payloadEnds === null) return digests
    for (let i = 0; i < count; i++) {
      bytes[i] = payloadBytes(payloadEnds, i)
      starts[i] = payloadEnds[i] - bytes[i]
    }
    crc32Rows(payloads, starts, bytes, digests, count)
    return digests
  }

  #growTo(count: number): void {
    if (this.#digests.length >= count) return
    const room = 2 * count
    this.#heads = new Int32Array(2 * room)
    this.#headStarts = Uint32Array.from({ length: room }, (_, i) => 8 * i)
    this.#headBytes = new Uint32Array(room).fill(8)
    this.#starts = new Uint32Array(room)
    this.#bytes = new Uint32Array(room)
    this.#digests = new Uint32Array(room)
  }
}

const payloadBytes = (ends: Uint32Array | null, row: number): number =>
  ends === null ? 0 : ends[row] - (row === 0 ? 0 : ends[row - 1])
