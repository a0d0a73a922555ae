// The CRC-32 of what is large: zlib's, by the processor's own instructions, which its own does not use.
import { crc32 } from 'node:zlib'
import { crc32Rows } from '@fabric/shm-ring'

/** Below it the call costs more than it spares. */
const LARGE_BYTES = 4096

const offset = Uint32Array.of(0)
const length = Uint32Array.of(0)
const crcs = Uint32Array.of(0)

/** @param before the CRC of the bytes that stand before these. */
export function checksum(bytes: Uint8Array, before = 0): number {
  if (bytes.byteLength < LARGE_BYTES) return crc32(bytes, before)
  length[0] = bytes.byteLength
  crcs[0] = before
  crc32Rows(bytes, offset, length, crcs, 1)
  return crcs[0]
}
