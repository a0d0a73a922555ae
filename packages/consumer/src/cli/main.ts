// The command `fabric-consumer`. Exit codes: 0 drained, 1 it could not serve, 2 it was called wrongly.
import { readFileSync } from 'node:fs'
import { FabricError } from '@fabric/protocol'
import { CommanderError } from 'commander'
import { pino } from 'pino'
import { Consumer } from '../consumer.js'
import type { Logger } from '../log.js'
import { createRuntime } from '../runtimes/create-runtime.js'
import type { Runtime } from '../runtimes/runtime.js'
import { type CliOptions, defineCommand } from './options.js'

const USAGE: ReadonlySet<string> = new Set(['FABRIC_CONTRACT_INVALID', 'FABRIC_CONFIG_INVALID'])

async function main(): Promise<number> {
  const options = parse()
  if (typeof options === 'number') return options
  const logger = pino(
    { level: options.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 2, sync: true }),
  )
  let runtime: Runtime | null = null
  try {
    runtime = await createRuntime(options.runtime, {
      ...options,
      modelDir: options.modelDir,
      logger,
    })
    logger.info({}, `runtime: ${runtime.description ?? options.runtime}`)
    await serve(runtime, options, logger)
    return 0
  } catch (error) {
    return explain(error, logger)
  } finally {
    await runtime?.close()
  }
}

function parse(): CliOptions | number {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  try {
    return defineCommand(version).exitOverride().parse().opts<CliOptions>()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
}

async function serve(runtime: Runtime, options: CliOptions, logger: Logger): Promise<void> {
  const consumer = new Consumer({
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
  await consumer.run((batch) => runtime.run(batch), { handleSignals: true })
}

/** One line for what a user can mend; the stack for what is ours. */
function explain(error: unknown, logger: Logger): number {
  if (error instanceof FabricError) {
    logger.error({ code: error.code }, error.message)
    return USAGE.has(error.code) ? 2 : 1
  }
  logger.error({ err: error }, 'unexpected')
  return 1
}

process.exit(await main())
