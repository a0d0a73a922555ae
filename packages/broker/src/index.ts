// The public face of the package: start a broker in this process, read its state, and its options as
// data. The command is built on the same.

export type * from '@fabric/core'
export { Core } from '@fabric/core'
export { type BrokerOptions, type RunningBroker, startBroker } from './broker.js'
export { type ConfigSources, loadConfig } from './config/load.js'
export type { BrokerConfig } from './config/options.js'
export { configReference, configSchema, errorReference } from './config/reference.js'
export type { BrokerState, ConsumerState, FillPercentiles } from './state.js'
