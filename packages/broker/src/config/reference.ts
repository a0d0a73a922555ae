// The option table as documents: the JSON schema of the YAML file, and the reference pages that
// stand in docs/reference. Tests keep the committed files equal to what these functions return.

import type { Option } from '@fabric/core'
import { ERROR_KINDS } from '@fabric/protocol'
import { environmentOf, flagOf, OPTION_NAMES, OPTIONS } from './options.js'

const option = (name: (typeof OPTION_NAMES)[number]) => OPTIONS[name] as Option<unknown>

/** The default in words; `auto` options say what the broker chooses. */
export function defaultInWords({ fallback, fallbackText }: Option<unknown>): string {
  if (fallbackText !== undefined) return fallbackText
  if (Array.isArray(fallback)) return fallback.length === 0 ? 'none' : fallback.join(',')
  return String(fallback)
}

export function configSchema(): Record<string, unknown> {
  const properties = OPTION_NAMES.map((name) => {
    const { about, schema, fallback, fallbackText } = option(name)
    const description = fallbackText === undefined ? about : `${about} Default: ${fallbackText}.`
    const known = fallbackText === undefined ? { default: fallback } : {}
    return [name, { description, ...schema, ...known }]
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'fabric-broker configuration',
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  }
}

export function configReference(): string {
  const lines = [
    '# Configuration of the broker',
    '',
    'Made from `packages/core/src/options.ts` and `packages/broker/src/config/options.ts`. Each option is a flag, an environment variable',
    'and a key of the YAML file given with `--config`. A flag wins over the environment, that over the',
    'file, that over the default. Unknown keys and impossible values are refused at start. Units stand',
    'in the names. `fabric-broker config schema` prints the JSON schema of the file.',
  ]
  let group = ''
  for (const name of OPTION_NAMES) {
    const spec = option(name)
    if (spec.group !== group) {
      group = spec.group
      lines.push('', `## ${group}`)
    }
    const plain =
      spec.published === undefined ? '' : ` With \`asPublished\`: \`${String(spec.published)}\`.`
    lines.push(
      '',
      `### ${name}`,
      '',
      `${spec.about}${plain}`,
      '',
      `- ${spec.expects.replaceAll(' | ', ' or ')}; default: ${defaultInWords(spec)}`,
      `- \`${flagOf(name)}\`, \`${environmentOf(name)}\``,
    )
  }
  return `${lines.join('\n')}\n`
}

export function errorReference(): string {
  const rows = Object.entries(ERROR_KINDS).map(
    ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`,
  )
  return [
    '# Error codes',
    '',
    'Made from `packages/protocol/src/errors.ts`. Codes are stable; messages are not. Over HTTP an',
    'error is `{ "error": { "code", "message", "field"? } }` with the status below; a command prints',
    'the code and the message, and ends with exit code 1 (2 for a wrong call).',
    '',
    '| code | status | meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}
