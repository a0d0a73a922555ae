// Digests of ids and bodies as they stand on disk (S36); they never change within a format version.
//
// An id's is keyed, since ids come from outside: HalfSipHash-2-4 with four key words and four output
// words. A body is only compared with the body of the same id, so its CRC-32 is enough.
import { crc32 } from 'node:zlib'

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

const head = new Int32Array(2)
const headBytes = new Uint8Array(head.buffer)
let lastHead = crc32(headBytes)

/** Of model and length, with which the digest of a body begins. */
export function headDigest(model: number, length: number): number {
  // Items that come together are mostly alike.
  if (head[0] !== model || head[1] !== length) {
    head[0] = model
    head[1] = length
    lastHead = crc32(headBytes)
  }
  return lastHead
}

/** Of model, length, and the bytes of the tokens or of the payload. */
export const bodyDigest = (model: number, length: number, body: Uint8Array): number =>
  crc32(body, headDigest(model, length))
