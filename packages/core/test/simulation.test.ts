import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { failureOf } from './shrink.js'
import { Simulation } from './simulate.js'
import { told } from './tell.js'
import { type Workload, workload } from './workload.js'

// SEED=1234 replays one; SCENARIO=file.json replays one that was written. The long run is
// `npm run test:soak -- core`.
const SEEDS = 1200
const seeds = process.env.SEED === undefined ? range(1, SEEDS) : [Number(process.env.SEED)]
const scenarios = join(import.meta.dirname, 'scenarios')
const files =
  process.env.SCENARIO === undefined
    ? readdirSync(scenarios).map((name) => join(scenarios, name))
    : [process.env.SCENARIO]

it.skipIf(process.env.SCENARIO !== undefined)(
  `I1 to I8: hold after every step of ${seeds.length} random workloads`,
  () => {
    for (const seed of seeds) {
      const failure = failureOf(workload(seed))
      if (failure !== null) throw new Error(told(seed, failure))
    }
  },
  120_000,
)

it.each(files)('scenario %s: breaks no rule any more', (file) => {
  const scenario = JSON.parse(readFileSync(file, 'utf8')) as Workload
  expect(failureOf(scenario)?.message).toBeUndefined()
})

it('core: the same events at the same times give the same effects, byte for byte', () => {
  for (const seed of seeds.slice(0, 10)) {
    const [a, b] = [new Simulation(workload(seed), true), new Simulation(workload(seed), true)]
    a.run()
    b.run()
    expect(a.log.events.join('\n')).toBe(b.log.events.join('\n'))
    expect(a.log.effects.join('\n')).toBe(b.log.effects.join('\n'))
  }
}, 120_000)

function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i)
}
