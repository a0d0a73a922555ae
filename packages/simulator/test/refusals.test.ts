// What a scenario may not hold, and the path that the refusal names.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RULE_OPTIONS } from '@fabric/core'
import { expect, it } from 'vitest'
import { parseScenario, readScenario, Simulation } from '../src/index.js'
import { BROKER_ONLY_KEYS } from '../src/scenario/config.js'
import { temporaryFolder } from './folder.js'
import { gpu, items, run, type Setting } from './run.js'

const refusal = (scenario: unknown): unknown => {
  try {
    parseScenario(typeof scenario === 'string' ? scenario : JSON.stringify(scenario))
    return 'accepted'
  } catch (error) {
    const { code, field } = error as { code: string; field: string }
    expect(code).toBe('FABRIC_SCENARIO')
    return field
  }
}
const event = (over: object): Setting => ({ events: [{ atUs: 0, ...over }] })

it.each<[string, unknown, string]>([
  ['an unknown key', { consumer: [] }, 'consumer'],
  ['an unknown key of a consumer', { consumers: [gpu({ tokenz: 1 })] }, 'consumers[0].tokenz'],
  [
    'an unknown key of a service',
    { consumers: [gpu({ service: { fixedMs: 1 } })] },
    'consumers[0].service.fixedMs',
  ],
  ['an unknown key of an event', event({ flush: {}, why: 1 }), 'events[0].why'],
  [
    'an unknown key of an item',
    event({ submit: [{ id: 'a', length: 1, size: 1 }] }),
    'events[0].submit[0].size',
  ],
  [
    'an unknown key of submitMany',
    event({ submitMany: { count: 1, lengths: [1], every: 1 } }),
    'events[0].submitMany.every',
  ],
  ['an unknown key of a flush', event({ flush: { jobs: 'a' } }), 'events[0].flush.jobs'],
  ['an unknown key of a restart', event({ restart: { hard: true } }), 'events[0].restart.hard'],
  ['an unknown rule', { config: { spanWast: [0] } }, 'config.spanWast'],
  ['an option of the broker’s process', { config: { http: '127.0.0.1:1' } }, 'config.http'],
  ['an impossible rule', { config: { channelDepth: 0 } }, 'config.channelDepth'],
  ['a rule of the wrong type', { config: { cleanupMerge: 'yes' } }, 'config.cleanupMerge'],
  ['an event without an action', event({}), 'events[0]'],
  ['an event with two actions', event({ flush: {}, kill: 'gpu0' }), 'events[0]'],
  [
    'a deadline beyond 2^31 ms',
    event({ submit: [{ id: 'a', length: 1, deadlineMs: 2 ** 31 }] }),
    'events[0].submit[0].deadlineMs',
  ],
  ['an event without a time', { events: [{ flush: {} }] }, 'events[0].atUs'],
  ['a negative time', event({ atUs: -1, flush: {} }), 'events[0].atUs'],
  [
    'an id of a stream’s form',
    event({ submit: items('a').map((one) => ({ ...one, id: 'm12' })) }),
    'events[0].submit[0].id',
  ],
  [
    'an item without length',
    event({ submit: [{ id: 'a', length: 0 }] }),
    'events[0].submit[0].length',
  ],
  [
    'submitMany without lengths',
    event({ submitMany: { count: 1, lengths: [] } }),
    'events[0].submitMany.lengths',
  ],
  ['a flush of a job and a model', event({ flush: { job: 'a', model: 1 } }), 'events[0].flush'],
  ['onFull beside a submit', event({ submit: items('a'), onFull: 'wait' }), 'events[0].onFull'],
  ['a name that no consumer has', event({ kill: 'gpu7' }), 'events[0].kill'],
  ['two consumers of one name', { consumers: [gpu(), gpu()] }, 'consumers[1].name'],
  [
    'a script line for nobody',
    { consumers: [gpu({ script: [{ do: 'nack' }] })] },
    'consumers[0].script[0]',
  ],
  [
    'a rounding that is no power of two',
    { consumers: [gpu({ roundTo: 12 })] },
    'consumers[0].roundTo',
  ],
  ['text that is no JSON', '{', undefined as never],
])('simulate: %s is refused with its path', (_, scenario, field) => {
  expect(refusal(scenario)).toBe(field)
})

it('simulate: what is refused as the broker’s own is a key of its file, and no rule of the core', () => {
  const reference = readFileSync(
    new URL('../../../docs/reference/config.md', import.meta.url),
    'utf8',
  )
  const keys = [...reference.matchAll(/^### (\w+)$/gm)].map(([, key]) => key)
  expect(BROKER_ONLY_KEYS.filter((key) => !keys.includes(key))).toEqual([])
  expect(BROKER_ONLY_KEYS.filter((key) => Object.hasOwn(RULE_OPTIONS, key))).toEqual([])
})

it.each([
  ['no header', '1,2,3\n', 'the header is'],
  ['a length that is no number', 'at_us,length\n0,8\n1,x\n', 'line 3: length is "x"'],
  ['a time before the one above', 'at_us,length\n5,8\n4,8\n', 'line 3: at_us 4 is before'],
  ['a missing cell', 'at_us,length\n5\n', 'line 2: length is ""'],
])('trace: %s is refused with its line', (_, csv, message) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 't.csv'), csv)
  const scenario = { consumers: [gpu()], events: [{ atUs: 0, trace: 't.csv' }] }
  expect(() => run(scenario, { folder })).toThrow(message)
})

it('trace: a file that is not there is refused before anything runs', () => {
  const scenario = parseScenario(JSON.stringify(event({ trace: 'nowhere.csv' })))
  expect(() => new Simulation(scenario)).toThrow('events[0].trace')
})

it('trace: it is looked for beside its scenario', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 't.csv'), 'at_us,model,length\n0,1,8\n')
  writeFileSync(join(folder, 's.json'), JSON.stringify(event({ trace: 't.csv' })))
  const simulation = new Simulation(readScenario(join(folder, 's.json')))
  while (simulation.advance());
  expect(simulation.summary().items).toBe(1)
})

it.each([
  ['a folder', '.'],
  ['an empty file', 'empty.csv'],
])('a trace that is %s is refused by its path', (_, trace) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'empty.csv'), '')
  const scenario = parseScenario(JSON.stringify(event({ trace })), { folder })
  expect(() => new Simulation(scenario)).toThrow(/^events\[0\]\.trace: /)
})
