// The CRC-32 that zlib makes, by the addon: it uses the processor's own instructions, which Node's zlib does not.
import { crc32Rows } from '@fabric/shm-ring'

const offset = Uint32Array.of(0)
const length = Uint32Array.of(0)
const crcs = Uint32Array.of(0)

/** @param before the CRC of the bytes that stand before these. */
export function checksum(bytes: Uint8Array, before = 0): number {
  length[0] = bytes.byteLength
  crcs[0] = before
  crc32Rows(bytes, offset, length, crcs, 1)
  return crcs[0]
}
