// From flags, environment, file and defaults to one checked configuration. Flags win over the
// environment, that over the file, that over defaults; every refusal names the key and its source.
import { readFileSync } from 'node:fs'
import type { Option } from '@fabric/core'
import { FabricError } from '@fabric/protocol'
import { parseDocument } from 'yaml'
import {
  type BrokerConfig,
  DISK_MAX_QUEUED_ITEMS,
  DISK_MAX_QUEUED_TOKENS,
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
  if (checked === undefined) {
    // A range without an end ends where numbers stop being exact.
    const isBeyond = expects.includes('or more') && Number(value) > Number.MAX_SAFE_INTEGER
    const limit = isBeyond ? `, at most ${Number.MAX_SAFE_INTEGER}` : ''
    refuse(name, `${source} is ${JSON.stringify(value)}, expected ${expects}${limit}`)
  }
  given.set(name, checked)
}

function readFile(file: string, given: Map<OptionName, unknown>): void {
  let content: string
  try {
    content = readFileSync(file, 'utf8')
  } catch (cause) {
    refuse('config', `${file} cannot be read (${(cause as Error).message})`)
  }
  const values = parseYaml(file, content)
  if (values === null || values === undefined) return
  if (typeof values !== 'object' || Array.isArray(values))
    refuse('config', `${file} must hold keys and values`)
  for (const [name, value] of Object.entries(values)) {
    if (!isOption(name)) refuse(name, `unknown key in ${file}${suggestion(name)}`)
    else take(given, name, value, `in ${file} it`)
  }
}

function parseYaml(file: string, content: string): unknown {
  const document = parseDocument(content)
  try {
    if (document.errors.length > 0) throw document.errors[0]
    return document.toJS()
  } catch (error) {
    // What follows the first line is the place, drawn.
    return refuse('config', `${file}: ${(error as Error).message.replace(/:?\n.*/s, '')}`)
  }
}

/** Read by the commands beside the options. */
const OTHER_VARIABLES = ['FABRIC_CONFIG', 'FABRIC_BROKER', 'FABRIC_API_KEY']
/** Kubernetes sets such for every service: FABRIC_SERVICE_HOST, FABRIC_PORT_7410_TCP. */
const OF_A_SERVICE = /_(SERVICE_HOST|SERVICE_PORT|PORT)(_[A-Z0-9_]+)?$/

/** A warning for each variable that looks like ours and is read by nobody. */
export function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const known = [...OPTION_NAMES.map(environmentOf), ...OTHER_VARIABLES]
  return Object.keys(environment)
    .filter((name) => name.startsWith('FABRIC_') && !known.includes(name))
    .filter((name) => !OF_A_SERVICE.test(name))
    .map((name) => `no command reads the variable ${name}${suggestion(name, known)}`)
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
  const config = Object.fromEntries(entries) as BrokerConfig
  if (config.dataDir !== null)
    return { ...onDisk(config, given), mode: given.has('mode') ? config.mode : 'disk' }
  return config.spillDir === null ? config : withSpill(onDisk(config, given))
}

/** Defaults that are others where items wait on disk. */
function onDisk(config: BrokerConfig, given: ReadonlyMap<OptionName, unknown>): BrokerConfig {
  return {
    ...config,
    maxQueuedItems: given.has('maxQueuedItems') ? config.maxQueuedItems : DISK_MAX_QUEUED_ITEMS,
    maxQueuedTokens: given.has('maxQueuedTokens') ? config.maxQueuedTokens : DISK_MAX_QUEUED_TOKENS,
  }
}

/** What memory mode holds by default is what may wait in memory. */
function withSpill(config: BrokerConfig): BrokerConfig {
  const { maxQueuedItems: items, maxQueuedTokens: tokens } = config
  return {
    ...config,
    spillAboveItems: config.spillAboveItems ?? Math.min(items, OPTIONS.maxQueuedItems.fallback),
    spillAboveTokens: config.spillAboveTokens ?? Math.min(tokens, OPTIONS.maxQueuedTokens.fallback),
  }
}

/** What is possible alone but not together. */
function checkTogether(config: BrokerConfig): void {
  if (config.mode === 'disk' && config.dataDir === null)
    refuse('mode', 'disk needs a folder: set dataDir')
  if (config.mode === 'memory' && config.dataDir !== null)
    refuse('mode', 'memory keeps nothing, but dataDir is set: leave one of them out')
  checkSpill(config)
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

function checkSpill({ dataDir, spillDir, ...config }: BrokerConfig): void {
  const pairs = [
    ['spillAboveItems', 'maxQueuedItems'],
    ['spillAboveTokens', 'maxQueuedTokens'],
  ] as const
  if (spillDir !== null && dataDir !== null)
    refuse('spillDir', 'dataDir is set, where all items wait on disk anyway: leave one of them out')
  for (const [above, most] of pairs) {
    const limit = config[above]
    if (limit === null) continue
    if (spillDir === null) refuse(above, 'it goes with spillDir')
    if (limit > config[most]) refuse(above, `${limit} can never wait, ${most} is ${config[most]}`)
  }
}

/** " (did you mean leaseTimeoutMs?)" for a name that differs from a known one only a little. */
function suggestion(name: string, known: readonly string[] = OPTION_NAMES): string {
  const plain = (text: string) => text.replace(/[-_]|ms$|bytes$/gi, '').toLowerCase()
  const near =
    known.find((each) => plain(each) === plain(name)) ??
    known.find((each) => editDistance(plain(each), plain(name)) <= EDITS_MAX)
  return near === undefined ? '' : ` (did you mean ${near}?)`
}

const EDITS_MAX = 2

/** Levenshtein's, row by row. */
function editDistance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replaced = above[column - 1] + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, above[column] + 1, current[column - 1] + 1))
    }
    above = current
  }
  return above[to.length]
}
