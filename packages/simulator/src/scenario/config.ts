// The scenario's `config`: keys of the broker's YAML file, as far as they are the core's, to the core's
// own configuration. Limits default to none here: a scenario says what it wants bounded.
import { type CoreConfig, type Option, RULE_OPTIONS } from '@fabric/core'
import { refuse } from './refusal.js'

type RuleName = keyof typeof RULE_OPTIONS
const RULES = RULE_OPTIONS as Readonly<Record<string, Option<unknown>>>

/** Keys of the file that the core never sees, so that the refusal can say why. */
export const BROKER_ONLY_KEYS: readonly string[] = [
  'socket',
  'http',
  'insecure',
  'maxBodyBytes',
  'maxItemsPerRequest',
  'maxKeptResultBytes',
  'maxJobs',
  'hugePages',
  'ringBytes',
  'ringBytesMax',
  'maxConsumers',
  'maxConsumersPerUid',
  'dataDir',
  'sync',
  'syncIntervalMs',
  'diskReserveBytes',
  'allowUids',
  'allowGids',
  'logLevel',
  'logFormat',
  'drainTimeoutMs',
  'debuggable',
]

const INT32_MAX = 2 ** 31 - 1
const NO_LIMIT: Readonly<Record<string, number>> = {
  maxQueuedItems: INT32_MAX,
  maxQueuedTokens: Number.MAX_SAFE_INTEGER,
  maxItemBytes: Number.MAX_SAFE_INTEGER,
  maxUnreadResultBytes: Number.MAX_SAFE_INTEGER,
}

/** Keys that the simulator looks at itself. */
const OTHERS: Readonly<Record<string, (value: unknown) => void>> = {
  asPublished: (value) => {
    if (typeof value !== 'boolean') refuse('config.asPublished', 'expected true or false')
  },
}

export interface ConfigOptions {
  readonly asPublished?: boolean
}

/** Everything but the life of the broker, which each restart has of its own. */
export type Rules = Omit<CoreConfig, 'brokerLife'>

export function rulesOf(
  given: Readonly<Record<string, unknown>>,
  options: ConfigOptions = {},
): Rules {
  for (const [key, value] of Object.entries(given)) check(key, value)
  const published = options.asPublished === true || given.asPublished === true
  const rules: Record<string, unknown> = { hashSeed: 1, lengthsOnly: true }
  for (const name of Object.keys(RULES) as RuleName[]) {
    const { fallback, published: plain } = RULES[name]
    const usual = published && plain !== undefined ? plain : (NO_LIMIT[name] ?? fallback)
    rules[name] = Object.hasOwn(given, name) ? RULES[name].check(given[name]) : usual
  }
  return rules as unknown as Rules
}

function check(key: string, value: unknown): void {
  const field = `config.${key}`
  if (Object.hasOwn(OTHERS, key)) OTHERS[key](value)
  else if (Object.hasOwn(RULES, key)) {
    const { check, expects } = RULES[key]
    if (check(value) === undefined) {
      refuse(field, `is ${JSON.stringify(value)}, expected ${expects}`)
    }
  } else if (BROKER_ONLY_KEYS.includes(key)) {
    refuse(field, 'is an option of the broker’s process; the simulator runs only its core')
  } else refuse(field, 'unknown key')
}
