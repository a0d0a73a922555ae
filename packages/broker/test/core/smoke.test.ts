import { expect, it } from 'vitest'
import { Bench } from './helpers.js'

it('core: a small job goes through, tail included', () => {
  const bench = new Bench()
  bench.register(1)
  bench.submit([8, 8, 8, 8, 8, 8, 8, 8, 8, 16, 30])
  bench.do({ type: 'flush', job: null })
  bench.completeAll()
  expect(bench.settled.length).toBe(11)
  expect(bench.of('jobEnded').length).toBe(1)
  expect(bench.core.counts().waiting.items).toBe(0)
})
