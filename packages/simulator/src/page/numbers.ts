// Numbers and times as people read them on the page.

export const whole = (value: number): string => Math.round(value).toLocaleString('en-US')

export const percent = (ratio: number, digits = 1): string => `${(100 * ratio).toFixed(digits)} %`

/** '1.5 M', '24 k', '300'. */
export function tokens(value: number): string {
  const trim = (text: string) => text.replace(/\.?0+$/, '')
  if (value >= 1e6) return `${trim((value / 1e6).toFixed(2))} M`
  if (value >= 1e3) return `${trim((value / 1e3).toFixed(1))} k`
  return String(Number(value.toFixed(1)))
}

export interface TimeUnit {
  readonly name: string
  readonly ns: number
}

const UNITS: readonly TimeUnit[] = [
  { name: 'h', ns: 3.6e12 },
  { name: 'min', ns: 6e10 },
  { name: 's', ns: 1e9 },
  { name: 'ms', ns: 1e6 },
  { name: 'us', ns: 1e3 },
]

/** The greatest unit of which the span holds at least two. */
export const unitFor = (spanNs: number): TimeUnit =>
  UNITS.find(({ ns }) => spanNs >= 2 * ns) ?? UNITS[UNITS.length - 1]

export function time(ns: number): string {
  if (ns === 0) return '0 s'
  const unit = unitFor(ns)
  const value = ns / unit.ns
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit.name}`
}
