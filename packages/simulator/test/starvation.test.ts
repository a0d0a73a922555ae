// I7 at real sizes: what is few, late, long or rare is served beside what never ends (S16, S20a).
import { expect, it } from 'vitest'
import { type Line, parseScenario, Simulation } from '../src/index.js'
import { gpu, type Setting } from './run.js'

/** `npm run test:soak -- starvation` takes 1,000,000. */
const BULK = Number(process.env.FABRIC_BULK_ITEMS ?? 100_000)
const MORE = 10 * BULK
const LATE = 1000
/** The default, once there are items enough for so many batches. */
const STARVE_BATCHES = Math.min(10_000, BULK / 100)

const TIMEOUT_MS = 600_000

const OPEN = { releaseThreshold: 1 }
/** A millisecond a batch of 64 items of length 8. */
const worker = (over = {}) =>
  gpu({ batchSize: 64, tokens: 512, service: { fixedUs: 1000 }, ...over })
const bulk = (over = {}) => ({ submitMany: { count: BULK, lengths: [8], job: 'bulk', ...over } })

type Dispatch = Extract<Line, { type: 'dispatch' }>

interface Found {
  /** The batch that `has` was looking for, how many came before it, and how many items they held. */
  readonly batch: Dispatch
  readonly batches: number
  readonly items: number
}

/** Runs until a batch is dispatched of which `has` is true; null when the run ends without one. */
function runUntil(scenario: Setting, has: (ids: readonly string[]) => boolean): Found | null {
  let found: Found | null = null
  let batches = 0
  let items = 0
  const simulation = new Simulation(parseScenario(JSON.stringify(scenario)), {
    onLine: (line) => {
      if (line.type !== 'dispatch' || found !== null) return
      if (has(line.items)) found = { batch: line, batches, items }
      batches++
      items += line.items.length
    },
  })
  while (found === null && simulation.advance());
  return found
}

const has = (id: string) => (ids: readonly string[]) => ids.includes(id)

it(
  `S16: an item with a wait of 20 ms passes ${BULK} bulk items of its shape`,
  () => {
    const scenario = {
      config: OPEN,
      consumers: [worker()],
      events: [
        { atUs: 0, ...bulk() },
        { atUs: 10_000, submit: [{ id: 'quick', length: 8, maxWaitMs: 20, job: 'bulk' }] },
      ],
    }
    const found = runUntil(scenario, has('quick'))!
    // It is due at 30 ms; the next place is free when the batch that is worked on then ends.
    expect(found.batch.atUs).toBeGreaterThanOrEqual(30_000)
    expect(found.batch.atUs).toBeLessThanOrEqual(31_000)
    expect(found.batch).toMatchObject({ source: 'due', normal: true, fill: 1 })
    expect(found.batch.items[0]).toBe('quick')
  },
  TIMEOUT_MS,
)

it(
  `S20a: a late job of ${LATE} is not blocked by one of ${MORE}`,
  () => {
    const scenario = {
      config: OPEN,
      consumers: [worker()],
      events: [
        { atUs: 0, ...bulk({ count: MORE }) },
        { atUs: 1, submitMany: { count: LATE, lengths: [8], job: 'late' } },
      ],
    }
    let late = 0
    const found = runUntil(scenario, (ids) => {
      late += ids.filter((id) => Number(id.slice(1)) >= MORE).length
      return late === LATE
    })!
    // Half of each batch, and what had been dispatched before it came.
    expect(found.batches).toBeLessThanOrEqual(Math.ceil((2 * LATE) / 64) + 3)
  },
  TIMEOUT_MS,
)

/** One item that never makes a full batch, before as many of length 8 as there are. */
const passedOver = (length: number, config: object): Setting => ({
  config: { ...OPEN, cleanupIdleMs: 60_000, ...config },
  consumers: [worker({ tokens: 1024, inputLength: 1024 })],
  events: [
    { atUs: 0, submit: [{ id: 'few', length, job: 'bulk' }] },
    { atUs: 0, ...bulk() },
  ],
})

it.each([
  ['rare shape under endless common ones', 24],
  ['very long item among endless short ones', 500],
])(
  'I7: a %s leaves within starveBatches batches, and not at all without',
  (_, length) => {
    const config = { maxWaitMs: 0, starveBatches: STARVE_BATCHES }
    const found = runUntil(passedOver(length, config), has('few'))!
    expect(found.batches).toBeGreaterThanOrEqual(STARVE_BATCHES)
    expect(found.batches).toBeLessThanOrEqual(STARVE_BATCHES + 2)
    expect(found.batch.source).toBe('due')
    const last = runUntil(passedOver(length, { ...config, starveBatches: 0 }), has('few'))
    // The end of all else lets it go, as a tail.
    expect(last === null || last.items >= BULK - 64).toBe(true)
  },
  TIMEOUT_MS,
)

it('S16: by default it is a job’s wait of 5 minutes that lets it go', () => {
  const scenario = passedOver(500, { starveBatches: 0 })
  const slow = {
    ...scenario,
    consumers: [worker({ service: { fixedUs: 1_000_000 }, tokens: 1024 })],
  }
  const found = runUntil(slow, has('few'))!
  expect(found.batch.atUs).toBeGreaterThanOrEqual(300_000_000)
  expect(found.batch.atUs).toBeLessThanOrEqual(301_000_000)
})
