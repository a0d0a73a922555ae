// The public face of the package: the scheduling core, its types, and the table of its options. The
// broker runs it on real time, the simulator on a virtual clock: the same code.
export { Budget, mostTokens } from './budget.js'
export { Core } from './core.js'
export * from './core-bug.js'
export * from './core-config.js'
export * from './core-counts.js'
export * from './effects.js'
export * from './events.js'
export * from './explanation.js'
export type { ItemView, RecordColumns } from './item-view.js'
export * from './option.js'
export * from './options.js'
export * from './submission.js'
