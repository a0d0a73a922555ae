// The C++ tests under ThreadSanitizer and under AddressSanitizer with UndefinedBehaviorSanitizer;
// the addon under the latter two, loaded into Node for the tests of its package.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build, native, root, run, sanitizedAddon } from '../lib/programs.mjs'

function cplusplus(tally, preset) {
  build(preset)
  const { output, code } = run('ctest', ['--preset', preset], { cwd: native, show: false })
  const [, failed, total] = /(\d+) tests failed out of (\d+)/.exec(output) ?? [null, '0', '0']
  if (code !== 0) process.stdout.write(output)
  const wrong = code === 0 ? 0 : Math.max(1, Number(failed))
  tally.add(Number(total) - wrong, wrong, `C++ tests, preset ${preset}`)
}

function addon(tally) {
  const report = join(root, '.cache', 'asan', 'vitest.json')
  rmSync(report, { force: true })
  const package_ = join(root, 'packages', 'shm-ring')
  const args = ['run', '--root', package_, '--reporter=json', `--outputFile=${report}`]
  // Everything takes several times as long.
  const { code, output } = run(
    join(root, 'node_modules', '.bin', 'vitest'),
    [...args, '--testTimeout=300000'],
    { env: sanitizedAddon(), show: false },
  )
  if (code !== 0) process.stdout.write(output)
  const found = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : {}
  const wrong = code === 0 ? 0 : Math.max(1, found.numFailedTests ?? 0)
  tally.add(found.numPassedTests ?? 0, wrong, 'the addon in Node under AddressSanitizer')
}

export async function sanitizers(tally) {
  for (const preset of ['tsan', 'asan']) cplusplus(tally, preset)
  addon(tally)
}
