// Digests of ids and bodies (S36).
//
// Ids come from outside, so their digest is keyed: HalfSipHash-2-4 with 64 bits of output. With a
// plain hash a producer could choose ids that all meet in one place of the index. A body is only
// ever compared with the body of the same id, so a fast 32-bit digest (xxHash32's stripes) is enough.

import type { Cut } from './cut.js'

const P1 = 0x9e3779b1
const P2 = 0x85ebca77
const P3 = 0xc2b2ae3d
const P4 = 0x27d4eb2f

export class IdHash {
  /** The digest of the last id, as two unsigned 32-bit words. Never both 0. */
  high = 0
  low = 0
  private readonly key0: number
  private readonly key1: number

  constructor(seed: number) {
    this.key0 = seed | 0
    this.key1 = Math.floor(seed / 0x100000000) | 0
  }

  digest(bytes: Uint8Array, from: number, to: number): void {
    let v0 = this.key0
    let v1 = this.key1 ^ 0xee
    let v2 = this.key0 ^ 0x6c796765
    let v3 = this.key1 ^ 0x74656462
    let first = 0
    const blocks = ((to - from) >>> 2) + 1
    // After the message blocks, two finishing blocks of four rounds give one output word each.
    for (let block = 0; block < blocks + 2; block++) {
      const word = block < blocks ? messageWord(bytes, from, to, block) : 0
      if (block < blocks) v3 ^= word
      else if (block === blocks) v2 ^= 0xee
      else {
        first = v1 ^ v3
        v1 ^= 0xdd
      }
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
    }
    this.low = first >>> 0
    this.high = (v1 ^ v3) >>> 0
    // The index marks an empty place with 0, 0.
    if (this.low === 0 && this.high === 0) this.low = 1
  }
}

/** Block `block` of a message, little-endian; the last one holds the rest and the length. */
function messageWord(bytes: Uint8Array, from: number, to: number, block: number): number {
  const at = from + block * 4
  if (at + 4 <= to) {
    return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
  }
  let word = (to - from) << 24
  for (let i = at; i < to; i++) word |= bytes[i] << ((i - at) * 8)
  return word
}

/** Digest of what an item asks for: model, length, tokens and payload. */
/** Of the item that the cut stands at. */
export function digestOf(seed: number, cut: Cut): number {
  const { block } = cut
  return bodyDigest(
    seed,
    cut.model,
    cut.length,
    block.tokens,
    cut.tokensFrom,
    cut.tokensTo,
    block.payloads,
    cut.payloadFrom,
    cut.payloadTo,
  )
}

export function bodyDigest(
  seed: number,
  model: number,
  length: number,
  tokens: Int32Array,
  tokensFrom: number,
  tokensTo: number,
  payload: Uint8Array | null,
  payloadFrom: number,
  payloadTo: number,
): number {
  let digest = mix(mix(mix(seed | 0, model), length), payloadTo - payloadFrom)
  digest = words(digest, tokens, tokensFrom, tokensTo)
  if (payload !== null) {
    for (let i = payloadFrom; i < payloadTo; i++) digest = mix(digest, payload[i])
  }
  digest = Math.imul(digest ^ (digest >>> 15), P2)
  digest = Math.imul(digest ^ (digest >>> 13), P3)
  return (digest ^ (digest >>> 16)) >>> 0
}

function mix(digest: number, word: number): number {
  const sum = (digest + Math.imul(word, P3)) | 0
  return Math.imul((sum << 17) | (sum >>> 15), P4)
}

/** Four independent lanes, so that the multiplications of one stripe overlap. */
function words(seed: number, tokens: Int32Array, from: number, to: number): number {
  let a = (seed + P1 + P2) | 0
  let b = (seed + P2) | 0
  let c = seed | 0
  let d = (seed - P1) | 0
  let at = from
  for (; at + 4 <= to; at += 4) {
    a = (a + Math.imul(tokens[at], P2)) | 0
    b = (b + Math.imul(tokens[at + 1], P2)) | 0
    c = (c + Math.imul(tokens[at + 2], P2)) | 0
    d = (d + Math.imul(tokens[at + 3], P2)) | 0
    a = Math.imul((a << 13) | (a >>> 19), P1)
    b = Math.imul((b << 13) | (b >>> 19), P1)
    c = Math.imul((c << 13) | (c >>> 19), P1)
    d = Math.imul((d << 13) | (d >>> 19), P1)
  }
  let digest = ((a << 1) | (a >>> 31)) + ((b << 7) | (b >>> 25))
  digest = (digest + ((c << 12) | (c >>> 20)) + ((d << 18) | (d >>> 14))) | 0
  for (; at < to; at++) digest = mix(digest, tokens[at])
  return digest
}
