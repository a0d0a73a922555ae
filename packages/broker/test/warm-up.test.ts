import { expect, test } from 'vitest'
import { loadConfig } from '../src/config/load.js'
import { warmUp } from '../src/warm-up.js'

const config = { ...loadConfig({ flags: {} }), brokerLife: 1n, hashSeed: 1 }

test('warm-up lays out batches once per process, under whatever rules', () => {
  expect(
    warmUp({ ...config, readyRule: 'batch-size', serve: 'first', gateMaxHoldMs: 0 }),
  ).toBeGreaterThan(100)
  expect(warmUp(config)).toBe(0)
})
