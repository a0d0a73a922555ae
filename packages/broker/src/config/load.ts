// From flags, environment, file and defaults to one checked configuration. Flags win over the
// environment, that over the file, that over defaults; every refusal names the key and its source.
import { readFileSync } from 'node:fs'
import { FabricError } from '@fabric/protocol'
import { parseDocument } from 'yaml'
import type { Option } from './option.js'
import {
  type BrokerConfig,
  environmentOf,
  flagOf,
  OPTION_NAMES,
  OPTIONS,
  type OptionName,
} from './options.js'

export interface ConfigSources {
  /** As text from a command line, or as values from an embedding program. */
  readonly flags?: Readonly<Record<string, unknown>>
  readonly environment?: Readonly<Record<string, string | undefined>>
  readonly file?: string
}

function refuse(field: string, message: string): never {
  throw new FabricError('FABRIC_CONFIG_INVALID', `${field}: ${message}`, { field })
}

const option = (name: OptionName): Option<unknown> => OPTIONS[name] as Option<unknown>
const isOption = (name: string): name is OptionName => Object.hasOwn(OPTIONS, name)

/** @throws FabricError FABRIC_CONFIG_INVALID */
export function loadConfig(sources: ConfigSources): BrokerConfig {
  const given = new Map<OptionName, unknown>()
  if (sources.file !== undefined) readFile(sources.file, given)
  readEnvironment(sources.environment ?? {}, given)
  readFlags(sources.flags ?? {}, given)
  const config = withDefaults(given)
  checkTogether(config)
  return config
}

function take(
  given: Map<OptionName, unknown>,
  name: OptionName,
  value: unknown,
  source: string,
): void {
  const { check, fromText, expects } = option(name)
  const checked = check(typeof value === 'string' ? fromText(value) : value)
  if (checked === undefined)
    refuse(name, `${source} is ${JSON.stringify(value)}, expected ${expects}`)
  given.set(name, checked)
}

function readFile(file: string, given: Map<OptionName, unknown>): void {
  let content: string
  try {
    content = readFileSync(file, 'utf8')
  } catch (cause) {
    refuse('config', `${file} cannot be read (${(cause as Error).message})`)
  }
  const document = parseDocument(content)
  if (document.errors.length > 0) refuse('config', `${file}: ${document.errors[0].message}`)
  const values: unknown = document.toJS()
  if (values === null || values === undefined) return
  if (typeof values !== 'object' || Array.isArray(values))
    refuse('config', `${file} must hold keys and values`)
  for (const [name, value] of Object.entries(values)) {
    if (!isOption(name)) refuse(name, `unknown key in ${file}${suggestion(name)}`)
    else take(given, name, value, `in ${file} it`)
  }
}

function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  given: Map<OptionName, unknown>,
): void {
  for (const name of OPTION_NAMES) {
    const variable = environmentOf(name)
    const value = environment[variable]
    if (value !== undefined) take(given, name, value, variable)
  }
}

function readFlags(
  flags: Readonly<Record<string, unknown>>,
  given: Map<OptionName, unknown>,
): void {
  for (const [name, value] of Object.entries(flags)) {
    if (value === undefined) continue
    if (!isOption(name)) refuse(name, `unknown option${suggestion(name)}`)
    else take(given, name, value, flagOf(name))
  }
}

function withDefaults(given: ReadonlyMap<OptionName, unknown>): BrokerConfig {
  const published = given.get('asPublished') === true
  const entries = OPTION_NAMES.map((name) => {
    const { fallback, published: plain } = option(name)
    if (given.has(name)) return [name, given.get(name)]
    return [name, published && plain !== undefined ? plain : fallback]
  })
  return Object.fromEntries(entries) as BrokerConfig
}

/** What is possible alone but not together. */
function checkTogether(config: BrokerConfig): void {
  if (config.releaseThreshold !== null && config.releaseThreshold > config.maxQueuedTokens)
    refuse(
      'releaseThreshold',
      `${config.releaseThreshold} tokens can never wait, maxQueuedTokens is ${config.maxQueuedTokens}`,
    )
  if (config.maxItemBytes > config.maxBatchBytes)
    refuse(
      'maxItemBytes',
      `${config.maxItemBytes} is more than maxBatchBytes (${config.maxBatchBytes}): such an item would fit no batch`,
    )
}

/** " (did you mean leaseTimeoutMs?)" for a key that differs from a known one only a little. */
function suggestion(name: string): string {
  const plain = (text: string) => text.replace(/[-_]|ms$|bytes$/gi, '').toLowerCase()
  const near = OPTION_NAMES.find((known) => plain(known) === plain(name))
  return near === undefined ? '' : ` (did you mean ${near}?)`
}
