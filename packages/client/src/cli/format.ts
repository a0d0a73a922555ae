// Numbers as people read them.

export const count = (value: number): string => Math.round(value).toLocaleString('en-US')

/** Three digits, with k or M: '940', '21.4k', '1.50M'. */
export function short(value: number): string {
  for (const [unit, suffix] of [
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const) {
    if (value >= unit) {
      const scaled = value / unit
      return `${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)}${suffix}`
    }
  }
  return value < 10 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value))
}

export const percent = (ratio: number): string => `${(100 * ratio).toFixed(1)} %`

/** '8.4 s', '1 m 29 s', '3 h 12 m'. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const whole = Math.round(seconds)
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return `${minutes} m ${whole % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`
}

/** Columns as wide as their widest cell; numbers to the right. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? count(cell) : cell)),
  )
  const widths = cells.reduce<number[]>(
    (most, row) => row.map((cell, i) => Math.max(most[i] ?? 0, cell.length)),
    [],
  )
  const isRight = widths.map((_, i) => rows.slice(1).some((row) => typeof row[i] === 'number'))
  return cells
    .map((row) =>
      row
        .map((cell, i) => (isRight[i] ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
