// The public face of the package: the scheduling core, its types, and the table of its options. The
// broker runs it on real time, the simulator on a virtual clock: the same code.
export { Budget, mostTokens } from './budget.js'
export { Core } from './core.js'
export * from './option.js'
export * from './options.js'
export * from './types.js'
