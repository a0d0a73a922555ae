// The public face of the package: scenarios, and the broker's core run on them on a virtual clock.
export { type Comparison, compare, OURS } from './compare/compare.js'
export type { Figures } from './compare/figures.js'
export type { Line } from './lines.js'
export type { Percentiles } from './report/ratios.js'
export type { ConsumerSummary, Summary } from './report/summary.js'
export { parseScenario, readScenario, type Scenario } from './scenario/read.js'
export type { Observer } from './shell.js'
export { Simulation } from './simulation.js'
