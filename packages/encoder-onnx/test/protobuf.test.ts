import { expect, test } from 'vitest'
import { floatField, integerField, messageField, stringField } from '../src/protobuf.js'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test('protobuf: an integer is written as in the format description (field 1 = 150 is 08 96 01)', () => {
  expect(hex(integerField(1, 150))).toBe('089601')
})

test('protobuf: a string and a nested message are written as in the format description', () => {
  expect(hex(stringField(2, 'testing'))).toBe('120774657374696e67')
  expect(hex(messageField(3, [integerField(1, 150)]))).toBe('1a03089601')
})

test('protobuf: a negative integer takes ten bytes of two’s complement', () => {
  expect(hex(integerField(3, -1))).toBe('18ffffffffffffffffff01')
})

test('protobuf: a float is little-endian, and field numbers above 15 take two bytes', () => {
  expect(hex(floatField(2, 1))).toBe('150000803f')
  expect(hex(integerField(20, 7))).toBe('a00107')
})
