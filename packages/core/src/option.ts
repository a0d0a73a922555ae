// What one option is: how its value is read from text (flag, environment) and from YAML, checked,
// and described. The kinds below are all that the table in options.ts is made of.

export interface Option<T> {
  readonly kind: 'integer' | 'boolean' | 'choice' | 'text' | 'integers' | 'numbers'
  readonly about: string
  readonly group: string
  /** Used when nothing sets the option. */
  readonly fallback: T
  /** In words, where the value depends on the machine or on other options. */
  readonly fallbackText?: string
  /** Value under --as-published; absent where the published design has no say. */
  readonly published?: T
  readonly nullable: boolean
  /** Words for the help text: `integer, 1 or more`. */
  readonly expects: string
  /** JSON schema of the value, without title and description. */
  readonly schema: Readonly<Record<string, unknown>>
  /** A checked value, or undefined when `value` cannot be one. */
  check(value: unknown): T | undefined
  /** The same for text; text that is no value of the kind is handed to `check` as it is. */
  fromText(text: string): unknown
}

interface Common<T> {
  readonly about: string
  readonly group: string
  readonly fallback: T
  readonly fallbackText?: string
  readonly published?: T
}

const numberText = (text: string): unknown =>
  /^\d*\.?\d+(e-?\d+)?$/i.test(text) ? Number(text) : text

const integerText = (text: string): unknown => (/^-?\d+$/.test(text) ? Number(text) : text)

interface Range {
  readonly min: number
  readonly max?: number
  readonly powerOfTwo?: boolean
}

export function integer(spec: Common<number> & Range): Option<number> {
  const { min, max = Number.MAX_SAFE_INTEGER, powerOfTwo = false } = spec
  const range = spec.max === undefined ? `${min} or more` : `${min} to ${max}`
  const fits = (value: number) =>
    value >= min && value <= max && (!powerOfTwo || Number.isInteger(Math.log2(value)))
  return {
    ...spec,
    kind: 'integer',
    nullable: false,
    expects: `${powerOfTwo ? 'power of two' : 'integer'}, ${range}`,
    schema: {
      type: 'integer',
      minimum: min,
      ...(spec.max === undefined ? {} : { maximum: max }),
    },
    check: (value) =>
      Number.isSafeInteger(value) && fits(value as number) ? (value as number) : undefined,
    fromText: integerText,
  }
}

/** An option that may be left to the broker: `auto` on a command line, `null` or `auto` in YAML. */
export function optional<T>(option: Option<T>, fallbackText: string): Option<T | null> {
  return {
    ...option,
    fallback: null,
    fallbackText,
    nullable: true,
    expects: `${option.expects}, or auto`,
    schema: { anyOf: [option.schema, { enum: [null, 'auto'] }] },
    check: (value) => (value === null || value === 'auto' ? null : option.check(value)),
    fromText: (text) => (text === 'auto' ? null : option.fromText(text)),
  }
}

export function boolean(spec: Common<boolean>): Option<boolean> {
  return {
    ...spec,
    kind: 'boolean',
    nullable: false,
    expects: 'true or false',
    schema: { type: 'boolean' },
    check: (value) => (typeof value === 'boolean' ? value : undefined),
    fromText: (text) =>
      /^(true|1|yes)$/i.test(text) ? true : /^(false|0|no)$/i.test(text) ? false : text,
  }
}

export function choice<const T extends string>(
  values: readonly T[],
  spec: Common<NoInfer<T>>,
): Option<T> {
  return {
    ...spec,
    kind: 'choice',
    nullable: false,
    expects: values.join(' | '),
    schema: { enum: values },
    check: (value) => values.find((known) => known === value),
    fromText: (text) => text,
  }
}

export function text(spec: Common<string> & { expects: string; pattern?: RegExp }): Option<string> {
  return {
    ...spec,
    kind: 'text',
    nullable: false,
    schema: {
      type: 'string',
      minLength: 1,
      ...(spec.pattern === undefined ? {} : { pattern: spec.pattern.source }),
    },
    check: (value) =>
      typeof value === 'string' && value !== '' && (spec.pattern?.test(value) ?? true)
        ? value
        : undefined,
    fromText: (value) => value,
  }
}

/**
 * A list of numbers from 0 to `max`, each at least the one before: `0.01,0.04` on a command line, a
 * sequence in YAML.
 */
export function numbers(
  spec: Common<readonly number[]> & { readonly max: number; readonly most: number },
): Option<readonly number[]> {
  const { max, most } = spec
  const isNumber = (value: unknown): value is number => typeof value === 'number'
  const valid = (list: readonly unknown[]) =>
    list.length > 0 &&
    list.length <= most &&
    list.every(isNumber) &&
    list.every((value, i) => value >= (list[i - 1] ?? 0) && value <= max)
  return {
    ...spec,
    kind: 'numbers',
    nullable: false,
    expects: `1 to ${most} numbers from 0 to ${max}, none less than the one before, with commas between`,
    schema: {
      type: 'array',
      items: { type: 'number', minimum: 0, maximum: max },
      minItems: 1,
      maxItems: most,
    },
    check: (value) =>
      Array.isArray(value) && valid(value) ? (value as readonly number[]) : undefined,
    fromText: (value) => value.split(',').map((part) => numberText(part.trim())),
  }
}

interface ListRange {
  /** 0 unless set. */
  readonly min?: number
  readonly ascending?: boolean
  readonly maxCount?: number
}

/** A list of integers: `1000,1001` on a command line, a sequence in YAML. */
export function integers(spec: Common<readonly number[]> & ListRange): Option<readonly number[]> {
  const { min = 0, ascending = false, maxCount } = spec
  const valid = (value: unknown, at: number, all: readonly unknown[]) =>
    Number.isSafeInteger(value) &&
    (value as number) >= min &&
    (!ascending || at === 0 || (all[at - 1] as number) < (value as number))
  const atMost = maxCount === undefined ? '' : `at most ${maxCount} `
  return {
    ...spec,
    kind: 'integers',
    nullable: false,
    expects: `${atMost}${ascending ? 'ascending ' : ''}integers, ${min} or more, with commas between`,
    schema: {
      type: 'array',
      items: { type: 'integer', minimum: min },
      ...(maxCount === undefined ? {} : { maxItems: maxCount }),
    },
    check: (value) =>
      Array.isArray(value) && value.length <= (maxCount ?? value.length) && value.every(valid)
        ? (value as readonly number[])
        : undefined,
    fromText: (value) =>
      value === '' ? [] : value.split(',').map((part) => integerText(part.trim())),
  }
}
