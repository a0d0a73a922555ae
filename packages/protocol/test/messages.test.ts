import { describe, expect, test } from 'vitest'
import {
  decodeError,
  decodeHello,
  decodeTaken,
  decodeWelcome,
  encodeError,
  encodeHello,
  encodeTaken,
  encodeWelcome,
  FabricError,
  FRAME_HEADER_BYTES,
  type Hello,
  type Welcome,
} from '../src/index.js'

const contract = { batchSize: 64, tokens: 16384, inputLength: 512, model: 1 }
const hello: Hello = {
  protocol: 1,
  ringAbi: 1,
  name: 'gpu0',
  contract,
  transport: 'auto',
  pid: 7,
  host: 'h',
}
const body = (frame: Uint8Array) => frame.subarray(FRAME_HEADER_BYTES)
const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const refusal = (change: object) => {
  try {
    decodeHello(json({ ...hello, contract: { ...contract, ...change } }))
  } catch (error) {
    return error instanceof FabricError ? [error.code, error.field] : error
  }
  return 'accepted'
}

describe('hello', () => {
  test('comes back as it was sent', () => {
    expect(decodeHello(body(encodeHello(hello)))).toEqual(hello)
  })

  test.each([
    ['batchSize', 0],
    ['batchSize', -1],
    ['batchSize', 2 ** 40],
    ['batchSize', 1.5],
    ['batchSize', '64'],
    ['batchSize', null],
    ['tokens', 0],
    ['tokens', 1e20],
    ['inputLength', -512],
    ['model', -1],
    ['roundTo', 12],
    ['roundTo', 128],
    ['maxInFlight', 0],
    ['layout', 'diagonal'],
  ])('a contract whose %s is %j is refused by that name', (field, value) => {
    expect(refusal({ [field]: value })).toEqual(['FABRIC_CONTRACT_INVALID', `contract.${field}`])
  })

  test('an unknown key is refused by its name', () => {
    expect(refusal({ batch_size: 3 })).toEqual(['FABRIC_CONTRACT_INVALID', 'contract.batch_size'])
  })

  test('a missing integer is refused by its name', () => {
    expect(refusal({ tokens: undefined })).toEqual(['FABRIC_CONTRACT_INVALID', 'contract.tokens'])
  })

  test('another protocol, and bytes that are no JSON, are protocol errors', () => {
    expect(() => decodeHello(json({ ...hello, protocol: 2 }))).toThrow(/protocol/)
    expect(() => decodeHello(Uint8Array.from([0xff, 0xfe]))).toThrow(/not JSON/)
  })
})

test('welcome, error and taken come back as they were sent', () => {
  const welcome: Welcome = {
    protocol: 1,
    name: 'gpu0',
    brokerLife: '0123456789abcdef',
    leaseTimeoutMs: 30000,
    renewEveryMs: 5000,
    layout: 'padded',
    roundTo: 8,
    maxInFlight: 1,
    transport: 'ring',
    transportReason: 'same host',
    ring: { capacityBytes: 1 << 26, pageSizeBytes: 1 << 21 },
    warnings: [],
  }
  expect(decodeWelcome(body(encodeWelcome(welcome)))).toEqual(welcome)
  const error = decodeError(
    body(encodeError({ code: 'FABRIC_FORBIDDEN', message: 'uid 12', field: 'uid' })),
  )
  expect([error.code, error.message, error.field]).toEqual(['FABRIC_FORBIDDEN', 'uid 12', 'uid'])
  expect(decodeTaken(body(encodeTaken(2 ** 40)))).toBe(2 ** 40)
  expect(() => decodeTaken(new Uint8Array(4))).toThrow(/8 expected/)
})
