// The command's flags, one table: each is a flag and an environment variable, and is checked in one
// place. What is wrong is one line that names the flag.
import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import { BATCH_SIZE_MAX, INT32_MAX, MAX_IN_FLIGHT_MAX, ROUND_TO_MAX } from '@fabric/protocol'
import { Command, InvalidArgumentError, Option } from 'commander'

/** As commander gives them, after the checks below. */
export interface CliOptions {
  readonly broker: string
  readonly runtime: string
  readonly modelDir?: string
  readonly batchSize: number
  readonly tokens: number
  readonly inputLength: number
  readonly model: number
  readonly name?: string
  readonly layout?: 'padded' | 'ragged'
  readonly roundTo?: number
  readonly maxInFlight?: number
  readonly transport: 'auto' | 'ring' | 'socket'
  readonly overlength: 'truncate' | 'fail'
  readonly keepLastToken: boolean
  readonly device: 'cpu' | 'cuda' | 'auto'
  readonly threads: number
  readonly normalize: 'auto' | 'yes' | 'no'
  readonly reconnect: boolean
  readonly connectTimeout?: number
  readonly logLevel: string
  readonly logFormat: 'json' | 'pretty'
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

export function defineCommand(version: string): Command {
  const command = new Command('fabric-consumer')
    .description('Serves a model to the broker: takes batches, runs them, returns the results.')
    .version(version)
    .allowExcessArguments(false)
  for (const option of options()) command.addOption(option)
  return command
}

function options(): Option[] {
  const flag = (flags: string, description: string) => {
    const option = new Option(flags, description)
    return option.env(`FABRIC_${option.name().replaceAll('-', '_').toUpperCase()}`)
  }
  const integer = (flags: string, description: string, least: number, most: number) =>
    flag(flags, description).argParser(parseInteger(least, most))
  return [
    flag('--broker <address>', 'address of the broker').default(defaultBroker()),
    flag('--runtime <name>', '`onnx`, or the path of a module that exports createRuntime').default(
      'onnx',
    ),
    flag('--model-dir <dir>', 'folder of the model'),
    integer('--batch-size <n>', 'most items in a batch', 1, BATCH_SIZE_MAX).makeOptionMandatory(),
    integer('--tokens <n>', 'token budget of a batch', 1, INT32_MAX).makeOptionMandatory(),
    integer('--input-length <n>', 'longest input, tokens', 1, INT32_MAX).makeOptionMandatory(),
    integer('--model <n>', 'number of the model', 0, INT32_MAX).makeOptionMandatory(),
    flag('--name <name>', 'name in the broker’s status (default: host name and process id)'),
    flag(
      '--layout <layout>',
      'layout of the batches (default: the runtime’s, else padded)',
    ).choices(['padded', 'ragged']),
    integer(
      '--round-to <n>',
      'padded lengths are multiples of it, a power of two',
      1,
      ROUND_TO_MAX,
    ),
    integer(
      '--max-in-flight <n>',
      'batches worked on at a time (default: 1)',
      1,
      MAX_IN_FLIGHT_MAX,
    ),
    flag('--transport <transport>', 'how batches come')
      .choices(['auto', 'ring', 'socket'])
      .default('auto'),
    flag('--overlength <policy>', 'items longer than the input length are cut, or fail')
      .choices(['truncate', 'fail'])
      .default('truncate'),
    flag('--no-keep-last-token', 'cut at the end, also where the runtime keeps the last token'),
    flag('--device <device>', 'where the model runs')
      .choices(['cpu', 'cuda', 'auto'])
      .default('auto'),
    integer('--threads <n>', 'threads inside an operator, on the cpu', 1, 1024).default(1),
    flag('--normalize <when>', 'L2-normalise the rows; auto: where the model wants it')
      .choices(['auto', 'yes', 'no'])
      .default('auto'),
    flag('--no-reconnect', 'end, with exit code 1, when there is no broker or it goes'),
    integer(
      '--connect-timeout <ms>',
      'end, with exit code 1, after so long without a broker',
      1,
      INT32_MAX,
    ),
    flag('--log-format <format>', 'log lines as JSON, or for people')
      .choices(['json', 'pretty'])
      .default('json'),
    flag('--log-level <level>', 'log lines from this level on').choices(LOG_LEVELS).default('info'),
  ]
}

/** Digits only: parseInt would take 64k for 64. */
function parseInteger(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be an integer from ${least} to ${most}.`)
  }
}

/** Where `fabric-broker serve` listens unless told otherwise; where it would, if it does not yet. */
function defaultBroker(): string {
  const system = '/run/fabric/broker.sock'
  const { XDG_RUNTIME_DIR: runtimeDir } = process.env
  if (!runtimeDir) return `unix:${system}`
  const own = join(runtimeDir, 'fabric', 'broker.sock')
  const isSystem = existsSync(system) || (!existsSync(own) && isWritable('/run'))
  return `unix:${isSystem ? system : own}`
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}
