import { describe, expect, test } from 'vitest'
import {
  CONTROL_FRAME_BYTES_MAX,
  encodeFrame,
  FabricError,
  FRAME_HEADER_BYTES,
  FrameReader,
  FrameType,
  writeFrameHeader,
} from '../src/index.js'

const bytes = (...values: number[]) => Uint8Array.from(values)
const codeOf = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    return error instanceof FabricError ? `${error.code} ${error.field ?? ''}`.trim() : error
  }
  return 'nothing was thrown'
}

describe('frames', () => {
  test('a stream cut at every byte gives the same frames', () => {
    const stream = Buffer.concat([
      encodeFrame(FrameType.renew),
      encodeFrame(FrameType.taken, bytes(1, 2, 3, 4, 5, 6, 7, 8)),
      encodeFrame(FrameType.results, new Uint8Array(10_000).fill(7)),
    ])
    for (const step of [1, 3, 7, 8, 4096, stream.byteLength]) {
      const reader = new FrameReader()
      const seen: [number, number][] = []
      for (let at = 0; at < stream.byteLength; at += step) {
        reader.push(stream.subarray(at, at + step))
        for (let frame = reader.next(); frame !== null; frame = reader.next()) {
          seen.push([frame.type, frame.body.byteLength])
        }
      }
      expect(seen).toEqual([
        [FrameType.renew, 0],
        [FrameType.taken, 8],
        [FrameType.results, 10_000],
      ])
    }
  })

  test('bodies keep their bytes when the buffer grows and moves', () => {
    const reader = new FrameReader()
    for (let i = 0; i < 200; i++)
      reader.push(encodeFrame(FrameType.results, new Uint8Array(i * 37).fill(i)))
    for (let i = 0; i < 200; i++) {
      const body = reader.next()?.body
      expect(body?.byteLength).toBe(i * 37)
      expect(body?.every((byte) => byte === i)).toBe(true)
    }
    expect(reader.next()).toBeNull()
  })

  test('a peer of another version, an unknown type and a length that lies are named', () => {
    const frame = (edit: (view: DataView) => void) => {
      const made = encodeFrame(FrameType.hello, bytes(123, 125))
      edit(new DataView(made.buffer))
      const reader = new FrameReader()
      reader.push(made)
      return codeOf(() => reader.next())
    }
    expect(frame((view) => view.setUint8(5, 9))).toBe('FABRIC_PROTOCOL version')
    expect(frame((view) => view.setUint8(4, 99))).toBe('FABRIC_PROTOCOL type')
    expect(frame((view) => view.setUint32(0, 7, true))).toBe('FABRIC_PROTOCOL length')
    expect(frame((view) => view.setUint32(0, CONTROL_FRAME_BYTES_MAX + 1, true))).toBe(
      'FABRIC_PROTOCOL length',
    )
  })

  test('a peer that has not introduced itself cannot announce a large frame', () => {
    const header = new Uint8Array(FRAME_HEADER_BYTES)
    writeFrameHeader(header, FrameType.results, 1 << 20)
    const stranger = new FrameReader(false)
    stranger.push(header)
    expect(codeOf(() => stranger.next())).toBe('FABRIC_PROTOCOL length')
    const known = new FrameReader(true)
    known.push(header)
    expect(known.next()).toBeNull()
  })
})
