// What stands in the log behind what the index knows: appends that were answered, and whose transaction
// had not come when the broker ended. Read at a start, which brings them into the index, and by `verify`
// and `dump`, which only look.
//
// The appends of one write share a sync, and a write is begun when the one before it is on the disk. So an
// append that is not whole was never answered, unless a write begins behind it: then the disk has lost
// what it had, and the operator is told. What is whole is taken, whether it was answered or not.
import { readFileSync } from 'node:fs'
import { type AppendHeader, align8, readAppendHeader } from './append-header.js'
import { checksum } from './checksum.js'
import { checksumOf, decodeBlock, type ItemBlock } from './item-block.js'
import type { LogPosition } from './log-position.js'
import { isSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath, segmentsIn } from './segment-file.js'
import { columnsIn, type SettledColumns } from './settled-columns.js'

interface TailPlace {
  readonly header: AppendHeader
  readonly segment: number
  readonly offset: number
}

export interface TailItems extends TailPlace {
  readonly kind: 'accepted'
  /** In the order of the header's. */
  readonly blocks: readonly ItemBlock[]
}

export interface TailSettled extends TailPlace {
  readonly kind: 'settled'
  readonly columns: SettledColumns
}

export type TailAppend = TailItems | TailSettled

export const startOf = ({ segment, offset }: TailPlace): LogPosition => ({ segment, offset })
export const endOf = ({ segment, offset, header }: TailPlace): LogPosition => ({
  segment,
  offset: offset + header.bytes,
})

/** @param onProblem told what cannot be read and was acknowledged, in words for the operator. */
export function* tailOfLog(
  dataDir: string,
  hashKey: Buffer,
  from: LogPosition,
  onProblem: (problem: string) => void,
): Generator<TailAppend> {
  /** Where an append is not whole that may have been answered. */
  let broken: string | null = null
  const tellBroken = () => {
    if (broken !== null)
      onProblem(
        `accepted items or settlements cannot be read (${broken}): items are lost, and their producers may send them again; what was settled runs again`,
      )
    broken = null
  }
  for (const { segment, bytes: size } of segmentsIn(dataDir)) {
    if (segment < from.segment) continue
    const path = segmentPath(dataDir, segment)
    if (segment === from.segment && size < from.offset)
      onProblem(
        `${path} ends at byte ${size}, and the index knows it up to ${from.offset}: what was accepted behind that is lost, and its producers may send it again`,
      )
    // Segments are large, and after a clean end there is no tail.
    if (segment === from.segment && size <= from.offset) continue
    const bytes = readIfThere(path)
    // One that is foreign is told by whoever opens the log; a broker that died at once left less than a header.
    if (bytes === null || !isSegmentHeader(bytes, segment, hashKey)) continue
    const start = segment === from.segment ? from.offset : 0
    let brokenAt: number | null = null
    for (let at = Math.max(SEGMENT_HEADER_BYTES, start); at < bytes.byteLength; ) {
      const found = readAppend(bytes, hashKey, segment, at)
      if (found === null) {
        brokenAt ??= at
        broken ??= `${path} at byte ${at}`
        at = nextAppend(bytes, hashKey, at + 8)
        continue
      }
      const { header } = found
      if (brokenAt === null || header.writeStart > brokenAt) {
        tellBroken()
        brokenAt = null
      }
      at += header.bytes
      if (found.append !== null) yield found.append
    }
  }
}

/** A broker beside `verify` may have removed it since it was listed. */
function readIfThere(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** null: not whole. */
function readAppend(
  bytes: Buffer,
  hashKey: Buffer,
  segment: number,
  at: number,
): { readonly header: AppendHeader; readonly append: TailAppend | null } | null {
  const header = readAppendHeader(bytes, hashKey, at)
  if (header === null || at + header.bytes > bytes.byteLength) return null
  const place = { header, segment, offset: at }
  // Copied: columns are viewed at addresses that are multiples of 8.
  const parts = header.blocks.map(
    ({ at: of, bytes: size }) => new Uint8Array(bytes.subarray(at + of, at + of + size)),
  )
  if (header.kind === 'settled') {
    const [{ crc, count }] = header.blocks
    if (checksum(parts[0]) !== crc) return null
    return { header, append: { ...place, kind: 'settled', columns: columnsIn(parts[0], count) } }
  }
  const blocks: ItemBlock[] = []
  for (const [index, part] of parts.entries()) {
    const block = decodeBlock(part)
    if (block === null || checksumOf(part) !== header.blocks[index].crc) return null
    blocks.push(block)
  }
  // Of moved blocks the index knows, here or there.
  return { header, append: header.kind === 'moved' ? null : { ...place, kind: 'accepted', blocks } }
}

/** Where the next header of an append stands that is whole. */
function nextAppend(bytes: Buffer, hashKey: Buffer, from: number): number {
  for (let at = align8(from); at < bytes.byteLength; at += 8)
    if (readAppendHeader(bytes, hashKey, at) !== null) return at
  return bytes.byteLength
}
