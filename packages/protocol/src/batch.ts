// The batch format: what stands in the ring is byte for byte what goes over the socket.
//
//   0 u32 magic "FBAT"   4 u16 version   6 u8 layout   7 u8 zero
//   8 u64 batch         16 u64 broker life
//  24 u32 model         28 u32 size       32 u32 padded length (0 when ragged)   36 u32 attempt
//  40 u32 actual tokens 44 u32 offset of input ids   48 u32 offset of id ends
//  52 u32 offset of payload ends, 0 = no payloads    56 u32 total bytes          60 u32 zero
//  64 i32[size] lengths
//   . i32 input ids, 64-aligned: size x padded length row-major, or actual tokens one after another
//   . u32[size] id ends, then the ids, UTF-8
//   . u32[size] payload ends, then the payloads
//
// Little-endian, as are all machines that Node runs on here. Numeric sections are 4-aligned, so that
// they can be read in place as typed arrays.
import { FabricError } from './errors.js'

export const BATCH_MAGIC = 0x54414246
export const BATCH_VERSION = 1
export const BATCH_HEADER_BYTES = 64
const LAYOUTS = ['padded', 'ragged'] as const
export type Layout = (typeof LAYOUTS)[number]

export interface BatchShape {
  readonly layout: Layout
  readonly size: number
  /** 0 when ragged. */
  readonly paddedLength: number
  readonly actualTokens: number
  /** Sum of the ids, UTF-8 bytes. */
  readonly idBytes: number
  /** Sum of the payloads, bytes, or null when no item has one. */
  readonly payloadBytes: number | null
}

/** Where the sections of a batch stand, in bytes from its start. */
export interface BatchPlan extends BatchShape {
  readonly lengthsAt: number
  readonly inputIdsAt: number
  readonly idEndsAt: number
  readonly payloadEndsAt: number
  readonly totalBytes: number
}

export interface BatchHeader {
  readonly batch: number
  readonly brokerLife: bigint
  readonly model: number
  readonly attempt: number
}

const align = (value: number, to: number) => Math.ceil(value / to) * to

export function planBatch(shape: BatchShape): BatchPlan {
  const slots = shape.layout === 'padded' ? shape.size * shape.paddedLength : shape.actualTokens
  const inputIdsAt = align(BATCH_HEADER_BYTES + 4 * shape.size, 64)
  const idEndsAt = inputIdsAt + 4 * slots
  const idsEnd = align(idEndsAt + 4 * shape.size + shape.idBytes, 4)
  const payloadEndsAt = shape.payloadBytes === null ? 0 : idsEnd
  const totalBytes =
    shape.payloadBytes === null ? idsEnd : align(idsEnd + 4 * shape.size + shape.payloadBytes, 4)
  return {
    ...shape,
    lengthsAt: BATCH_HEADER_BYTES,
    inputIdsAt,
    idEndsAt,
    payloadEndsAt,
    totalBytes,
  }
}

/** Writes the 64-byte header; `byteOffset` is where the batch starts in `target`. */
export function writeBatchHeader(
  target: ArrayBuffer,
  byteOffset: number,
  header: BatchHeader,
  plan: BatchPlan,
): void {
  const view = new DataView(target, byteOffset, BATCH_HEADER_BYTES)
  view.setUint32(0, BATCH_MAGIC, true)
  view.setUint16(4, BATCH_VERSION, true)
  view.setUint8(6, LAYOUTS.indexOf(plan.layout))
  view.setUint8(7, 0)
  view.setBigUint64(8, BigInt(header.batch), true)
  view.setBigUint64(16, header.brokerLife, true)
  view.setUint32(24, header.model, true)
  view.setUint32(28, plan.size, true)
  view.setUint32(32, plan.paddedLength, true)
  view.setUint32(36, header.attempt, true)
  view.setUint32(40, plan.actualTokens, true)
  view.setUint32(44, plan.inputIdsAt, true)
  view.setUint32(48, plan.idEndsAt, true)
  view.setUint32(52, plan.payloadEndsAt, true)
  view.setUint32(56, plan.totalBytes, true)
  view.setUint32(60, 0, true)
}

/** A batch read in place. Views end when their buffer is detached: a later use sees length 0. */
export interface BatchView extends BatchHeader {
  readonly layout: Layout
  readonly size: number
  readonly paddedLength: number
  readonly tokenCount: number
  readonly lengths: Int32Array
  readonly inputIds: Int32Array
  readonly idEnds: Uint32Array
  readonly ids: Uint8Array
  readonly payloadEnds: Uint32Array | null
  readonly payloads: Uint8Array | null
}

const malformed = (message: string) => new FabricError('FABRIC_BATCH_MALFORMED', message)

/**
 * Reads a batch in place. Every offset is checked, so that no later access leaves the bytes.
 * @throws FabricError FABRIC_BATCH_MALFORMED
 */
export function openBatch(
  buffer: ArrayBuffer,
  byteOffset = 0,
  byteLength = buffer.byteLength - byteOffset,
): BatchView {
  if (byteLength < BATCH_HEADER_BYTES)
    throw malformed(`${byteLength} bytes are too few for a batch`)
  const view = new DataView(buffer, byteOffset, byteLength)
  if (view.getUint32(0, true) !== BATCH_MAGIC) throw malformed('no batch starts here')
  const version = view.getUint16(4, true)
  if (version !== BATCH_VERSION)
    throw malformed(`batch version ${version}, this side reads ${BATCH_VERSION}`)
  const plan = checkedPlan(view, byteLength)
  const { size } = plan
  const idEnds = new Uint32Array(buffer, byteOffset + plan.idEndsAt, size)
  const payloadEnds =
    plan.payloadEndsAt === 0 ? null : new Uint32Array(buffer, byteOffset + plan.payloadEndsAt, size)
  const slots = plan.layout === 'padded' ? size * plan.paddedLength : plan.actualTokens
  return {
    batch: Number(view.getBigUint64(8, true)),
    brokerLife: view.getBigUint64(16, true),
    model: view.getUint32(24, true),
    attempt: view.getUint32(36, true),
    layout: plan.layout,
    size,
    paddedLength: plan.paddedLength,
    tokenCount: plan.actualTokens,
    lengths: new Int32Array(buffer, byteOffset + plan.lengthsAt, size),
    inputIds: new Int32Array(buffer, byteOffset + plan.inputIdsAt, slots),
    idEnds,
    ids: new Uint8Array(buffer, byteOffset + plan.idEndsAt + 4 * size, plan.idBytes),
    payloadEnds,
    payloads:
      payloadEnds === null
        ? null
        : new Uint8Array(
            buffer,
            byteOffset + plan.payloadEndsAt + 4 * size,
            plan.payloadBytes ?? 0,
          ),
  }
}

function checkedPlan(view: DataView, byteLength: number): BatchPlan {
  const layout = LAYOUTS[view.getUint8(6)]
  if (layout === undefined) throw malformed(`unknown layout ${view.getUint8(6)}`)
  const size = view.getUint32(28, true)
  const idEndsAt = view.getUint32(48, true)
  const payloadEndsAt = view.getUint32(52, true)
  const shape = {
    layout,
    size,
    paddedLength: view.getUint32(32, true),
    actualTokens: view.getUint32(40, true),
    idBytes: lastEnd(view, idEndsAt, size, byteLength),
    payloadBytes: payloadEndsAt === 0 ? null : lastEnd(view, payloadEndsAt, size, byteLength),
  }
  const plan = planBatch(shape)
  const agrees =
    plan.inputIdsAt === view.getUint32(44, true) &&
    plan.idEndsAt === idEndsAt &&
    plan.payloadEndsAt === payloadEndsAt &&
    plan.totalBytes === view.getUint32(56, true)
  if (!agrees || plan.totalBytes > byteLength) throw malformed('offsets do not agree with sizes')
  return plan
}

/** Ends must grow, so that item i lies between end i - 1 and end i; the last is the sum. */
function lastEnd(view: DataView, at: number, size: number, byteLength: number): number {
  if (at % 4 !== 0 || at + 4 * size > byteLength) throw malformed('an index lies outside the batch')
  let end = 0
  for (let i = 0; i < size; i++) {
    const next = view.getUint32(at + 4 * i, true)
    if (next < end) throw malformed('an index does not grow')
    end = next
  }
  return end
}
