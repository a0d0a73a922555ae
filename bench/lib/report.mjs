// What a comparison leaves: a table on the terminal and results/NAME.md, .json and .svg.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promiseTable } from './promises.mjs'

const folder = join(import.meta.dirname, '..', 'results')

/** @typedef {{ title: string, note?: string, head: string[], rows: string[][] }} Table */

/**
 * @param {string} name
 * @param {{ title: string, method: string[], tables: Table[], promises: import('./promises.mjs').Checked[],
 *   charts: { file: string, svg: string }[], data: unknown }} result
 * @param {{ machine: Record<string, unknown>, command: string, quick: boolean, seconds: number }} run
 */
export function report(name, result, run) {
  const tables = [promiseTable(result.promises), ...result.tables]
  process.stdout.write(`${tables.map(plain).join('\n')}\n`)
  // A quick run only shows that everything works; it must not replace a result.
  const stem = run.quick ? `${name}-quick` : name
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${stem}.md`), markdown(result, tables, run))
  writeFileSync(
    join(folder, `${stem}.json`),
    `${JSON.stringify({ ...run, promises: result.promises, data: result.data }, shortened, 1)}\n`,
  )
  if (run.quick) return
  for (const { file, svg } of result.charts) writeFileSync(join(folder, file), svg)
}

/** Five significant digits: more would be noise. */
const shortened = (_key, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value

function markdown(result, tables, run) {
  const { machine } = run
  return [
    `# ${result.title}`,
    '',
    `\`${run.command}\`, commit ${machine.commit}, ${machine.date}, ${Math.round(run.seconds)} s`,
    '',
    `Machine: ${machine.cpu}, ${machine.cores} cores, last cache ${machine.lastCacheMiB} MiB, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, Node ${machine.node}. 2 MiB pages: ${machine.hugePages}; transparent: ${machine.transparentHugePages}. Load average at the start ${machine.loadAtStart}, at the end ${machine.loadAtEnd}.`,
    '',
    ...result.charts.map(({ file, alt }) => `![${alt}](${file})\n`),
    ...tables.flatMap((table) => [
      `## ${table.title}`,
      ...(table.note ? [table.note, ''] : []),
      ...grid(table),
      '',
    ]),
    '## Method',
    ...result.method.map((line) => `- ${line}`),
    '',
  ].join('\n')
}

const grid = ({ head, rows }) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`)

/** @param {Table} table */
function plain({ title, head, rows }) {
  const widths = head.map((word, i) => Math.max(word.length, ...rows.map((row) => row[i].length)))
  const line = (row) =>
    row
      .map((word, i) => word.padEnd(widths[i]))
      .join('  ')
      .trimEnd()
  return [`\n${title}`, line(head), ...rows.map(line)].join('\n')
}
