// `fabric-broker verify`: reads all of a data folder and says what is wrong with it.
//
// The check runs in a process of its own: a data file whose tree is damaged may lead LMDB to memory
// that is not there.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { FabricError } from '@fabric/protocol'
import type { StoreReport } from '../storage/verify.js'

const NUMBERS = new Intl.NumberFormat('en-US')
const WHAT_TO_DO =
  'The broker starts with what can be read, sets the rest aside and counts it. To keep all of it, restore a copy of the folder.'

export function verify({ dataDir, json }: { dataDir: string; json?: boolean }): void {
  const report = check(dataDir)
  if (report.problems.length > 0) process.exitCode = 1
  process.stdout.write(
    json === true ? `${JSON.stringify(report, null, 2)}\n` : renderReport(dataDir, report),
  )
}

function check(dataDir: string): StoreReport {
  const child = spawnSync(
    process.execPath,
    [fileURLToPath(new URL('./verify-child.js', import.meta.url)), dataDir],
    { encoding: 'utf8', maxBuffer: 2 ** 28 },
  )
  try {
    const answer = JSON.parse(child.stdout) as StoreReport | { code: never; message: string }
    if ('code' in answer) throw FabricError.fromBody(answer)
    return answer
  } catch (error) {
    if (error instanceof FabricError) throw error
    const how = child.signal === null ? child.stderr.trim() : `it ended with ${child.signal}`
    throw new FabricError(
      'FABRIC_STORE_DAMAGED',
      `the data file in ${dataDir} cannot be read to its end (${how}): restore a copy of the folder, or start with another --data-dir; \`fabric-broker dump\` may get some of it out`,
    )
  }
}

export function renderReport(dataDir: string, report: StoreReport): string {
  const { problems } = report
  const number = (value: number) => NUMBERS.format(value)
  const lines = [
    `${dataDir}: ${problems.length === 0 ? 'in order' : `${number(problems.length)} problems`}`,
    `jobs      ${number(report.jobs)}, and ${number(report.deletedJobs)} deleted ones that are being removed`,
    `items     ${number(report.items)} not settled, in ${number(report.blocks)} blocks`,
    `results   ${number(report.results)}`,
    `ids       ${number(report.ids)}`,
    `set aside ${number(report.setAside)}`,
  ]
  if (problems.length > 0) lines.push('', ...problems, '', WHAT_TO_DO)
  return `${lines.join('\n')}\n`
}
