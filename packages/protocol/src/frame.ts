// Frames of the consumer's connection: an 8-byte header and a body.
//
//   0 u32 length of the frame, header included (little-endian)
//   4 u8  type     5 u8 version     6 u16 zero
//
// The length stands first so that a native reader can take exactly one frame from the socket
// (the one that carries the ring's descriptors) without knowing anything else.
import { FabricError } from './errors.js'
import { CONTROL_FRAME_BYTES_MAX, DATA_FRAME_BYTES_MAX, PROTOCOL_VERSION } from './limits.js'

export const FRAME_HEADER_BYTES = 8

export const FrameType = {
  hello: 1, // consumer, JSON: contract and wishes
  welcome: 2, // broker, JSON, with the ring's descriptors if there is one
  error: 3, // either, JSON; the sender closes after it
  renew: 4, // consumer, empty
  taken: 5, // consumer, u64 batch
  results: 6, // consumer, results.ts
  drain: 7, // either, empty: take, or send, nothing new
  bye: 8, // consumer, empty: all is settled, the close that follows is clean
  batch: 9, // broker, batch.ts: the socket transport
  earlierResults: 10, // consumer, earlier-results.ts: of batches of another life of the broker
} as const
export type FrameType = (typeof FrameType)[keyof typeof FrameType]

export interface Frame {
  readonly type: FrameType
  /** Borrowed from the reader: valid until the next `push`. */
  readonly body: Uint8Array
}

const types: ReadonlySet<number> = new Set(Object.values(FrameType))
const DATA: readonly number[] = [FrameType.results, FrameType.batch, FrameType.earlierResults]
const isData = (type: number) => DATA.includes(type)

export function encodeFrame(type: FrameType, ...parts: readonly Uint8Array[]): Uint8Array {
  let length = FRAME_HEADER_BYTES
  for (const part of parts) length += part.byteLength
  const frame = new Uint8Array(length)
  writeFrameHeader(frame, type, length)
  let at = FRAME_HEADER_BYTES
  for (const part of parts) {
    frame.set(part, at)
    at += part.byteLength
  }
  return frame
}

/** Header of a frame of `length` bytes, its own 8 included. */
export function writeFrameHeader(target: Uint8Array, type: FrameType, length: number): void {
  const view = new DataView(target.buffer, target.byteOffset)
  view.setUint32(0, length, true)
  view.setUint8(4, type)
  view.setUint8(5, PROTOCOL_VERSION)
  view.setUint16(6, 0, true)
}

/** Cuts a byte stream into frames. One per connection; throws FABRIC_PROTOCOL on anything else. */
export class FrameReader {
  #buffer = new Uint8Array(4096)
  #start = 0
  #end = 0

  /** @param trusted false until the peer has introduced itself: only small frames are taken. */
  constructor(public trusted = true) {}

  push(chunk: Uint8Array): void {
    this.#reserve(chunk.byteLength)
    this.#buffer.set(chunk, this.#end)
    this.#end += chunk.byteLength
  }

  /** The next whole frame, or null when more bytes are needed. */
  next(): Frame | null {
    const available = this.#end - this.#start
    if (available < FRAME_HEADER_BYTES) return null
    const view = new DataView(this.#buffer.buffer, this.#buffer.byteOffset + this.#start)
    const length = view.getUint32(0, true)
    const type = view.getUint8(4)
    this.#check(length, type, view.getUint8(5))
    if (available < length) {
      this.#reserve(length - available)
      return null
    }
    const body = this.#buffer.subarray(this.#start + FRAME_HEADER_BYTES, this.#start + length)
    this.#start += length
    return { type: type as FrameType, body }
  }

  #check(length: number, type: number, version: number): void {
    if (version !== PROTOCOL_VERSION) {
      throw new FabricError(
        'FABRIC_PROTOCOL',
        `protocol version ${version}, this side speaks ${PROTOCOL_VERSION}`,
        { field: 'version' },
      )
    }
    if (!types.has(type))
      throw new FabricError('FABRIC_PROTOCOL', `unknown frame type ${type}`, { field: 'type' })
    const max = this.trusted && isData(type) ? DATA_FRAME_BYTES_MAX : CONTROL_FRAME_BYTES_MAX
    if (length < FRAME_HEADER_BYTES || length > max) {
      throw new FabricError(
        'FABRIC_PROTOCOL',
        `frame of ${length} bytes, at most ${max} are allowed`,
        { field: 'length' },
      )
    }
  }

  /** Room for `bytes` more behind what is held; moves the rest to the front, or grows. */
  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#buffer.byteLength) return
    const held = this.#end - this.#start
    const capacity = Math.max(4096, held + bytes)
    // A grown buffer is given back once what it was grown for has gone.
    const target =
      capacity > this.#buffer.byteLength || this.#buffer.byteLength > 4 * capacity
        ? new Uint8Array(2 ** Math.ceil(Math.log2(capacity)))
        : this.#buffer
    if (target === this.#buffer) target.copyWithin(0, this.#start, this.#end)
    else target.set(this.#buffer.subarray(this.#start, this.#end))
    this.#buffer = target
    this.#start = 0
    this.#end = held
  }
}
