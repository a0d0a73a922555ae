import { expect, it } from 'vitest'
import { Simulation } from './simulate.js'

// More: CORE_SEEDS=100000 CORE_FIRST_SEED=1000. A failing seed is named, and is enough to repeat it.
const SEEDS = Number(process.env.CORE_SEEDS ?? 200)
const FIRST = Number(process.env.CORE_FIRST_SEED ?? 1)

it('I1 to I6, I8: hold after every step of random workloads', () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    try {
      new Simulation(seed).run(120)
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
}, 120_000)

it('core: the same events at the same times give the same effects, byte for byte', () => {
  for (let seed = FIRST; seed < FIRST + 20; seed++) {
    const [a, b] = [new Simulation(seed, true), new Simulation(seed, true)]
    a.run(120)
    b.run(120)
    expect(a.log.events.join('\n')).toBe(b.log.events.join('\n'))
    expect(a.log.effects.join('\n')).toBe(b.log.effects.join('\n'))
  }
}, 120_000)
