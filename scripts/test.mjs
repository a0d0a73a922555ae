// `npm test`: the C++ tests and the TypeScript tests, and how many of each passed.
// A test that cannot run here (another user's rights, a kernel without the feature) is skipped and told.
// Arguments are handed to vitest: `npm test -- packages/broker` runs one package.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const reports = join(root, '.cache', 'tests')
const only = process.argv.slice(2)

rmSync(reports, { recursive: true, force: true })
mkdirSync(reports, { recursive: true })

function run(command, args, cwd) {
  process.stdout.write(`\n> ${command.split('/').pop()} ${args.join(' ')}\n`)
  return spawnSync(command, args, { cwd, stdio: 'inherit' }).status === 0
}

/** Counts of one runner; a runner that left no report counts as one failure. */
function counts(file, read) {
  if (!existsSync(file)) return { passed: 0, failed: 1, skipped: 0 }
  return read(readFileSync(file, 'utf8'))
}

function native() {
  const folder = join(root, 'native')
  const report = join(reports, 'native.xml')
  const built =
    run('cmake', ['--preset', 'release'], folder) &&
    run('cmake', ['--build', '--preset', 'release'], folder)
  const ok = built && run('ctest', ['--preset', 'release', '--output-junit', report], folder)
  const found = counts(report, (xml) => {
    const number = (name) => Number(new RegExp(`<testsuite[^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1])
    const failed = number('failures')
    const skipped = number('disabled') + number('skipped')
    return { passed: number('tests') - failed - skipped, failed, skipped }
  })
  return ok ? found : { ...found, failed: Math.max(1, found.failed) }
}

function typescript() {
  const report = join(reports, 'vitest.json')
  const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const ok = run(join(root, 'node_modules', '.bin', 'vitest'), [...args, ...only], root)
  const found = counts(report, (json) => {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(json)
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests }
  })
  return ok ? found : { ...found, failed: Math.max(1, found.failed) }
}

const results = only.length === 0 ? [['C++', native()]] : []
results.push(['TypeScript', typescript()])
process.stdout.write('\n')
let [passed, failed] = [0, 0]
for (const [name, found] of results) {
  const skipped = found.skipped > 0 ? `, ${found.skipped} skipped` : ''
  process.stdout.write(`${name}: ${found.passed} passed, ${found.failed} failed${skipped}\n`)
  passed += found.passed
  failed += found.failed
}
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)
