// What the tests of the simulator share: a scenario as an object, run to its end.
import { type Line, parseScenario, Simulation, type Summary } from '../src/index.js'

export interface Ran {
  readonly lines: readonly Line[]
  readonly summary: Summary
}

export interface Setting {
  readonly config?: Readonly<Record<string, unknown>>
  readonly consumers?: readonly object[]
  readonly events?: readonly object[]
}

export function run(scenario: Setting, options: Parameters<typeof parseScenario>[1] = {}): Ran {
  const lines: Line[] = []
  const simulation = new Simulation(parseScenario(JSON.stringify(scenario), options), {
    onLine: (line) => lines.push(line),
  })
  while (simulation.advance());
  return { lines, summary: simulation.summary() }
}

/** 100 us and 1 us for each padded token; batches of 4 x 8 tokens unless said otherwise. */
export const gpu = (over: object = {}) => ({
  name: 'gpu0',
  batchSize: 4,
  tokens: 32,
  inputLength: 64,
  model: 1,
  service: { fixedUs: 100, perPaddedTokenNs: 1000 },
  ...over,
})

export const items = (ids: string, length = 8, over: object = {}) =>
  [...ids].map((id) => ({ id, length, ...over }))

export const of = <T extends Line['type']>({ lines }: Ran, type: T) =>
  lines.filter((line): line is Extract<Line, { type: T }> => line.type === type)

/** `atUs type` of each line: the order of things. */
export const story = ({ lines }: Ran): string[] => lines.map(({ atUs, type }) => `${atUs} ${type}`)
