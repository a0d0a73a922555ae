export type { ErrorBody, ErrorCode, Layout, TransportWish, Welcome } from '@fabric/protocol'
export { FabricError } from '@fabric/protocol'
export type { Batch } from './batches/batch.js'
export {
  type BatchResults,
  ItemError,
  type ItemValue,
  type Json,
  type TruncatedValue,
} from './batches/results.js'
export {
  Consumer,
  type ConsumerEvents,
  type ConsumerStatus,
  type Handler,
  type RunOptions,
} from './consumer.js'
export type { Logger } from './log.js'
export type { ConsumerOptions } from './options.js'
export { createRuntime } from './runtimes/create-runtime.js'
export type { CreateRuntime, Runtime, RuntimeOptions, RuntimeRequest } from './runtimes/runtime.js'
