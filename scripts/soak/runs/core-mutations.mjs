// Every mutation of packages/core/test/mutations.json in a copy of the core, two at a time: each must be
// found, by --seeds N seeds of the simulation or by a test.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findMutation } from '../lib/mutant.mjs'

const list = join(
  import.meta.dirname,
  '..',
  '..',
  '..',
  'packages',
  'core',
  'test',
  'mutations.json',
)
const AT_ONCE = 2

export async function coreMutations(tally, { seeds = 200, first = 1 }) {
  const mutations = JSON.parse(readFileSync(list, 'utf8'))
  const rows = []
  let next = first - 1
  const work = async () => {
    while (next < mutations.length) {
      const at = next++
      const { rule, what, file } = mutations[at]
      const found = await findMutation(mutations[at], at, seeds)
      tally.count(found !== null, `${rule}, ${what} (${file}): ${found ?? 'SURVIVES'}`)
      rows[at] = `| ${rule} | ${what} | ${file} | ${found ?? 'survives'} |`
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  process.stdout.write(`\n| rule | mutation | file | found by |\n|---|---|---|---|\n`)
  process.stdout.write(`${rows.filter(Boolean).join('\n')}\n`)
}
