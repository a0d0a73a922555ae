// Protobuf wire format, the four kinds of field that ONNX files use. Written by hand because a graph
// is a few dozen fields of known numbers: no schema, no generated code, no dependency.
// Reference: https://protobuf.dev/programming-guides/encoding/

const WIRE = { varint: 0, bytes: 2, fixed32: 5 } as const
const utf8 = new TextEncoder()

/** A field ready to stand in a message; messages are fields one after another. */
export type Field = Uint8Array

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0
  for (const part of parts) length += part.byteLength
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.byteLength
  }
  return whole
}

/** Negative numbers take their 64-bit two's complement, as protobuf's int64 does. */
function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128)
    rest >>= 7n
  }
  bytes.push(Number(rest))
  return Uint8Array.from(bytes)
}

const tag = (number: number, wire: number) => varint(number * 8 + wire)

export const integerField = (number: number, value: number): Field =>
  concat([tag(number, WIRE.varint), varint(value)])

export function floatField(number: number, value: number): Field {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setFloat32(0, value, true)
  return concat([tag(number, WIRE.fixed32), bytes])
}

export const bytesField = (number: number, bytes: Uint8Array): Field =>
  concat([tag(number, WIRE.bytes), varint(bytes.byteLength), bytes])

export const stringField = (number: number, text: string): Field =>
  bytesField(number, utf8.encode(text))

/** A message nested in another. */
export const messageField = (number: number, fields: readonly Field[]): Field =>
  bytesField(number, concat(fields))
