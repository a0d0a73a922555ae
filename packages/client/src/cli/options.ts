// The flags that commands share, and what exit codes mean.
import { InvalidArgumentError, Option } from 'commander'
import { DEFAULT_BROKER } from '../client.js'
import { DEFAULT_RETRY } from '../http/retry.js'

export const EXIT = { completed: 0, couldNotRun: 1, usage: 2, someFailed: 3 } as const

export interface BrokerOptions {
  readonly broker: string
  readonly apiKey?: string
}

export interface RetryFlags {
  readonly retryFor: number
}

/** What a command's client is made with. */
export const clientOptions = ({ broker, apiKey, retryFor }: BrokerOptions & RetryFlags) => ({
  ...{ broker, apiKey },
  retry: { forMs: retryFor },
})

export interface InputFlags {
  readonly model: number
  readonly tokenizer?: string
  readonly textField: string
  readonly idField: string
  readonly job?: string
  readonly weight?: number
  readonly maxWaitMs?: number
  readonly workers?: number
}

export interface RunOptions extends BrokerOptions, RetryFlags, InputFlags {
  readonly output: string
  readonly order: 'input' | 'completion'
  readonly progress: boolean
  readonly quiet?: boolean
  readonly summary: 'text' | 'json'
  readonly restart?: boolean
}

function integer(from: number, to: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= from && value <= to) return value
    throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`)
  }
}

export const brokerOption = () =>
  new Option('--broker <url>', 'address of the broker').env('FABRIC_BROKER').default(DEFAULT_BROKER)

export const apiKeyOption = () =>
  new Option('--api-key <key>', 'sent with every request').env('FABRIC_API_KEY')

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 }

function durationMs(text: string): number {
  const [, amount, unit = 's'] = /^(\d+) ?([smh])?$/.exec(text) ?? []
  if (amount !== undefined) return Number(amount) * UNIT_MS[unit]
  throw new InvalidArgumentError('It must be a duration such as 30s, 5m or 1h.')
}

export const retryOption = () =>
  new Option('--retry-for <duration>', 'how long to wait for a broker that does not answer')
    .argParser(durationMs)
    .default(DEFAULT_RETRY.forMs, '5m')

export const restartOption = () =>
  new Option('--restart', 'begin anew over what an unfinished run left at the output')

export const inputOptions = (): Option[] => [
  new Option('--model <number>', 'model that the items are for')
    .argParser(integer(0, 2 ** 31 - 1))
    .makeOptionMandatory(),
  new Option('--tokenizer <path>', 'tokenizer.json of the model, or its folder; needed for text'),
  new Option('--text-field <name>', 'field that holds the text').default('text'),
  new Option('--id-field <name>', 'field that holds the id; default id: the line number').default(
    'id',
  ),
  new Option('--job <name>', 'name of the job; one that exists is gone on with'),
  new Option(
    '--weight <number>',
    'share of the GPUs beside other jobs of the model: 3 gets 3 tokens to their 1 (default: 1)',
  ).argParser(integer(1, 1000)),
  new Option(
    '--max-wait-ms <number>',
    'longest that an item is held back for a fuller batch; 0 = any time (default: the broker’s)',
  ).argParser(integer(0, 2 ** 31 - 1)),
  new Option('--workers <number>', 'tokenizer threads (default: cores - 1)').argParser(
    integer(1, 1024),
  ),
]
