import { Consumer, type ConsumerOptions, FabricError } from '@fabric/consumer'
import { describe, expect, test } from 'vitest'
import { checkOptions, parseBrokerAddress } from '../src/options.js'

const GOOD: ConsumerOptions = {
  broker: 'unix:/run/fabric/broker.sock',
  batchSize: 64,
  tokens: 16384,
  inputLength: 512,
  model: 1,
}

function refusal(change: Record<string, unknown>): FabricError {
  try {
    new Consumer({ ...GOOD, ...change } as ConsumerOptions)
  } catch (error) {
    if (error instanceof FabricError) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe('options', () => {
  test.each(
    ['batchSize', 'tokens', 'inputLength', 'model', 'maxInFlight', 'roundTo'].flatMap((field) =>
      [-1, 1e20, Number.NaN, 1.5, '64', null, Number.POSITIVE_INFINITY].map(
        (value) => [field, value] as const,
      ),
    ),
  )('%s = %s is refused at construction, by name', (field, value) => {
    const error = refusal({ [field]: value })
    expect(error.code).toBe('FABRIC_CONTRACT_INVALID')
    expect(error.field).toBe(field)
    expect(error.message).toContain(field)
  })

  test.each(['batchSize', 'tokens', 'inputLength', 'model'])('%s must be there', (field) => {
    const error = refusal({ [field]: undefined })
    expect(error).toMatchObject({ code: 'FABRIC_CONTRACT_INVALID', field })
  })

  test.each(['batchSize', 'tokens', 'inputLength', 'maxInFlight', 'roundTo'])(
    '%s = 0 is refused',
    (field) => {
      expect(refusal({ [field]: 0 })).toMatchObject({ code: 'FABRIC_CONTRACT_INVALID', field })
    },
  )

  test('a socket path that no kernel takes is refused at once, not tried for ever', () => {
    const error = refusal({ broker: `unix:/${'x'.repeat(107)}` })
    expect(error).toMatchObject({ code: 'FABRIC_CONFIG_INVALID', field: 'broker' })
    expect(error.message).toContain('107 bytes')
    expect(() => new Consumer({ ...GOOD, broker: `unix:/${'x'.repeat(106)}` })).not.toThrow()
  })

  test('a model may be number 0; a rounding that is no power of two is refused', () => {
    expect(() => new Consumer({ ...GOOD, model: 0 })).not.toThrow()
    expect(refusal({ roundTo: 12 })).toMatchObject({ field: 'roundTo' })
  })

  test.each([
    ['transport', 'carrier pigeon'],
    ['overlength', 'stretch'],
    ['layout', 'diagonal'],
    ['name', ''],
    ['name', 'x'.repeat(129)],
    ['connectTimeoutMs', -5],
    ['reconnect', 'yes'],
    ['batchsize', 64],
    ['broker', undefined],
    ['broker', 'run/fabric.sock'],
  ])('%s = %s is refused, by name', (field, value) => {
    expect(refusal({ [field]: value }).field).toBe(field)
  })

  test('batches are padded unless the program asks for another layout, whatever the broker prefers', () => {
    const layoutOf = (change: Partial<ConsumerOptions>) =>
      checkOptions({ ...GOOD, ...change }).connection.hello.contract.layout
    expect(layoutOf({})).toBe('padded')
    expect(layoutOf({ layout: 'ragged' })).toBe('ragged')
  })

  test('no options at all are refused like missing ones', () => {
    expect(() => new Consumer(undefined as unknown as ConsumerOptions)).toThrow('batchSize')
  })

  test.each(['tcp://host:7411', 'tls://host:7411'])(
    '%s says that this version connects by Unix socket',
    (broker) => {
      expect(refusal({ broker }).message).toContain('Unix socket')
    },
  )

  test('the address is a path behind unix:, with or without slashes of a URL', () => {
    expect(parseBrokerAddress('unix:/run/a.sock')).toBe('/run/a.sock')
    expect(parseBrokerAddress('unix:///run/a.sock')).toBe('/run/a.sock')
    expect(parseBrokerAddress('unix:a.sock')).toBe('a.sock')
  })
})
