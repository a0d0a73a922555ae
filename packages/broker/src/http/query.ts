// Query strings and small JSON bodies, checked: unknown names and impossible values are refused with
// their field.
import { FabricError } from '@fabric/protocol'

type Kind = 'text' | 'count' | 'flag'
type Read<S> = {
  -readonly [K in keyof S]?: S[K] extends 'text'
    ? string
    : S[K] extends 'count'
      ? number
      : S[K] extends 'flag'
        ? boolean
        : S[K] extends readonly (infer T)[]
          ? T
          : never
}

const refuse = (field: string, message: string): never => {
  throw new FabricError('FABRIC_BAD_REQUEST', `${field}: ${message}`, { field })
}

/** @throws FabricError FABRIC_BAD_REQUEST */
export function readQuery<const S extends Readonly<Record<string, Kind | readonly string[]>>>(
  query: unknown,
  spec: S,
): Read<S> {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    const kind = Object.hasOwn(spec, name) ? spec[name] : undefined
    if (kind === undefined) return refuse(name, 'no such parameter')
    if (typeof value !== 'string') return refuse(name, 'given more than once')
    result[name] = readValue(name, value, kind)
  }
  return result as Read<S>
}

function readValue(name: string, value: string, kind: Kind | readonly string[]): unknown {
  if (kind === 'text') return value
  if (kind === 'flag') {
    if (value === 'true' || value === '') return true
    return value === 'false' ? false : refuse(name, 'expected true or false')
  }
  if (kind === 'count')
    return /^\d{1,15}$/.test(value) ? Number(value) : refuse(name, 'expected an integer')
  return kind.includes(value) ? value : refuse(name, `expected ${kind.join(' or ')}`)
}

/** The fields of a JSON object body; an absent body is an empty object. */
export function readObject(body: unknown, fields: readonly string[]): Record<string, unknown> {
  if (body === undefined || body === null) return {}
  if (typeof body !== 'object' || Array.isArray(body))
    throw new FabricError('FABRIC_BAD_REQUEST', 'the body is not a JSON object')
  const unknown = Object.keys(body).find((field) => !fields.includes(field))
  if (unknown !== undefined) return refuse(unknown, 'no such field')
  return body as Record<string, unknown>
}
