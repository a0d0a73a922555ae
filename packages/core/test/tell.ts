// What is told of a failing seed: enough to see it again, and a scenario to commit.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Failure, failureOf, ruleOf, shrink } from './shrink.js'
import { type Workload, workload } from './workload.js'

/** Of processor time, not of a clock that others make run: the same answer on a busy machine. */
const SHRINK_MS = 15_000

/** Shrinks the seed's workload, writes the scenario to a new directory, and says how to replay both. */
export function told(seed: number, failure: Failure): string {
  const whole = workload(seed)
  const spentMs = () => process.cpuUsage().user / 1000
  const untilMs = spentMs() + SHRINK_MS
  const small = shrink(whole, failure, () => spentMs() > untilMs)
  const broke = failureOf(small)?.message ?? failure.message
  const name = `${ruleOf(failure.message).replace(/\W+/g, '-').slice(0, 40)}-${seed}.json`
  const file = join(mkdtempSync(join(tmpdir(), 'fabric-core-')), name)
  const found = { seed, commit: commit(), broke }
  writeFileSync(file, written({ found, ...small }))
  return [
    `seed ${seed}, commit ${found.commit}: ${failure.message}`,
    `  after ${failure.begun} of ${whole.operations.length} operations; shrunk to ${small.operations.length}: ${broke}`,
    `  scenario: ${file}`,
    `  replay: SCENARIO=${file} npm test -- packages/core/test/simulation.test.ts`,
    `      or: SEED=${seed} npm test -- packages/core/test/simulation.test.ts`,
    '  to keep it: copy the scenario to packages/core/test/scenarios/',
  ].join('\n')
}

/** An operation a line. */
function written({ operations, ...head }: Workload & { readonly found: object }): string {
  const lines = operations.map((one) => `    ${JSON.stringify(one)}`).join(',\n')
  const start = JSON.stringify(head, null, 2).replace(/\n}$/, '')
  return `${start},\n  "operations": [\n${lines}\n  ]\n}\n`
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}
