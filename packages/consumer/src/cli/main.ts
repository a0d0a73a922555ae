// The command `fabric-consumer`. Exit codes: 0 drained, 1 it could not serve, 2 it was called wrongly.
// A failure is one line on standard error.
import { readFileSync } from 'node:fs'
import { FabricError } from '@fabric/protocol'
import { CommanderError } from 'commander'
import { Consumer } from '../consumer.js'
import type { Logger } from '../log.js'
import { type ConsumerOptions, checkOptions } from '../options.js'
import { createRuntime } from '../runtimes/create-runtime.js'
import type { Runtime } from '../runtimes/runtime.js'
import { makeLogger } from './log.js'
import { type CliOptions, defineCommand } from './options.js'

const USAGE: ReadonlySet<string> = new Set(['FABRIC_CONTRACT_INVALID', 'FABRIC_CONFIG_INVALID'])

async function main(): Promise<number> {
  try {
    await serve(defineCommand(packageVersion()).exitOverride().parse().opts<CliOptions>())
    return 0
  } catch (error) {
    return explain(error)
  }
}

async function serve(options: CliOptions): Promise<void> {
  const logger = makeLogger(options.logLevel, options.logFormat)
  // Before the model, which takes long to load.
  checkOptions(consumerOptions(options, {}, logger))
  const { modelDir } = options
  const runtime = await createRuntime(options.runtime, { ...options, modelDir, logger })
  try {
    logger.info({}, `runtime: ${runtime.description ?? options.runtime}`)
    const consumer = new Consumer(consumerOptions(options, runtime, logger))
    await consumer.run((batch) => runtime.run(batch), { handleSignals: true })
  } finally {
    await runtime.close()
  }
}

const consumerOptions = (
  options: CliOptions,
  runtime: Pick<Runtime, 'layout' | 'keepLastToken'>,
  logger: Logger,
): ConsumerOptions => ({
  broker: options.broker,
  batchSize: options.batchSize,
  tokens: options.tokens,
  inputLength: options.inputLength,
  model: options.model,
  layout: options.layout ?? runtime.layout,
  roundTo: options.roundTo,
  maxInFlight: options.maxInFlight,
  name: options.name,
  transport: options.transport,
  overlength: options.overlength,
  keepLastToken: options.keepLastToken && runtime.keepLastToken === true,
  reconnect: options.reconnect,
  connectTimeoutMs: options.connectTimeout,
  logger,
})

/** One line for what a user can mend; the stack for what is ours to mend. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2 // it has said its line
  if (!(error instanceof FabricError)) throw error
  process.stderr.write(`fabric-consumer: ${error.code}: ${error.message}\n`)
  return USAGE.has(error.code) ? 2 : 1
}

function packageVersion(): string {
  const path = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}

process.exit(await main())
