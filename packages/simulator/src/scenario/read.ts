// From the text of a scenario file to a checked scenario; every refusal names the key's path.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { FabricError } from '@fabric/protocol'
import type { z } from 'zod'
import { type ConfigOptions, type Rules, rulesOf } from './config.js'
import { refuse } from './refusal.js'
import { type ConsumerData, type EventData, type ScenarioData, scenarioSchema } from './schema.js'

export interface Scenario {
  readonly rules: Rules
  readonly consumers: readonly ConsumerData[]
  readonly events: readonly EventData[]
  /** Where a trace is looked for. */
  readonly resolveTrace: (path: string) => string
}

/** @throws FabricError FABRIC_SCENARIO */
export function readScenario(file: string, options: ConfigOptions = {}): Scenario {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (cause) {
    const message = `${file} cannot be read (${(cause as Error).message})`
    throw new FabricError('FABRIC_SCENARIO', message, { cause })
  }
  return parseScenario(text, { ...options, folder: file === '-' ? '.' : dirname(file) })
}

/** @throws FabricError FABRIC_SCENARIO */
export function parseScenario(
  text: string,
  options: ConfigOptions & { readonly folder?: string } = {},
): Scenario {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new FabricError('FABRIC_SCENARIO', `no JSON: ${(cause as Error).message}`, { cause })
  }
  const parsed = scenarioSchema.safeParse(value)
  if (!parsed.success) refuseIssue(parsed.error.issues[0])
  const data = parsed.data as ScenarioData
  const rules = rulesOf(data.config, options)
  checkNames(data)
  checkReach(data, rules.mode)
  const folder = options.folder ?? '.'
  return {
    rules,
    consumers: data.consumers,
    events: data.events,
    resolveTrace: (path) => {
      const beside = resolve(folder, path)
      return existsSync(beside) ? beside : resolve(path)
    },
  }
}

function refuseIssue(issue: z.core.$ZodIssue): never {
  const place = pathOf(issue.path)
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0]
    refuse(place === '' ? key : `${place}.${key}`, 'unknown key')
  }
  refuse(place === '' ? 'scenario' : place, issue.message)
}

/** `events[2].submit[0].id` */
function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, i) =>
      typeof part === 'number' ? `[${part}]` : `${i > 0 ? '.' : ''}${String(part)}`,
    )
    .join('')
}

function checkNames({ consumers, events }: ScenarioData): void {
  const known = new Set<string>()
  consumers.forEach(({ name }, i) => {
    if (known.has(name)) refuse(`consumers[${i}].name`, `${name} stands there twice`)
    known.add(name)
  })
  for (const { register } of events) if (register !== undefined) known.add(register.name)
  events.forEach((event, i) => {
    for (const action of ['kill', 'stop', 'cont', 'drain'] as const) {
      const name = event[action]
      if (name !== undefined && !known.has(name)) {
        refuse(`events[${i}].${action}`, `no consumer is named ${name}`)
      }
    }
  })
}

/** What the format holds and the core cannot do. */
function checkReach({ events }: ScenarioData, mode: Rules['mode']): void {
  const refuseSettings = (field: string, settings: Readonly<Record<string, unknown>>) => {
    const { durable } = settings
    if (durable === true && mode === 'memory') {
      refuse(`${field}.durable`, 'in memory mode nothing is durable: set config.mode to disk')
    }
    // The simulated disk keeps none.
    if (settings.deadlineMs !== undefined && durable !== false && mode === 'disk') {
      refuse(`${field}.deadlineMs`, 'in disk mode only an item with "durable": false can have one')
    }
  }
  for (const [i, event] of events.entries()) {
    const field = `events[${i}]`
    refuseSettings(field, event)
    if (event.cancel !== undefined && mode === 'disk') {
      refuse(`${field}.cancel`, 'items on disk cannot be cancelled yet')
    }
    for (const [k, item] of (event.submit ?? []).entries()) {
      refuseSettings(`${field}.submit[${k}]`, item)
    }
    if (event.submitMany !== undefined) refuseSettings(`${field}.submitMany`, event.submitMany)
  }
}
