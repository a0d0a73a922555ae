// What a runtime is to the consumer: something that turns a batch into one result per item.
import type { Layout } from '@fabric/protocol'
import type { Batch } from '../batches/batch.js'
import type { BatchResults } from '../batches/results.js'
import type { Logger } from '../log.js'

export interface RuntimeOptions {
  readonly modelDir: string | undefined
  readonly device: 'cpu' | 'cuda' | 'auto'
  /** Threads inside one operator, on the CPU. */
  readonly threads: number
  readonly normalize: 'auto' | 'yes' | 'no'
  /** The contract, so that a model that cannot serve it is refused before it registers. */
  readonly batchSize: number
  readonly tokens: number
  readonly inputLength: number
  readonly model: number
  readonly logger: Logger
}

type Contract = 'batchSize' | 'tokens' | 'inputLength' | 'model'

/** What must be said; the rest has defaults: device and normalize `auto`, one thread, no log. */
export type RuntimeRequest = Pick<RuntimeOptions, Contract> & Partial<RuntimeOptions>

export interface Runtime {
  /** For the log line: what runs, and on what. */
  readonly description?: string
  /** The layout it wants its batches in; without it they are padded. */
  readonly layout?: Layout
  /** When an input is cut, its last token stays the last (a [SEP] must). Default false. */
  readonly keepLastToken?: boolean
  /** One call at a time unless maxInFlight says more. May block its thread for seconds. */
  run(batch: Batch): Promise<BatchResults>
  close(): Promise<void>
}

/** What a module given as `--runtime ./module.mjs` exports under the name `createRuntime`. */
export type CreateRuntime = (options: RuntimeOptions) => Runtime | Promise<Runtime>
