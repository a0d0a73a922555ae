// The C++ tests under ThreadSanitizer and under AddressSanitizer with UndefinedBehaviorSanitizer;
// the addon under the latter two, loaded into Node for the tests of its package.
import { build, native, run, runVitest, sanitizedAddon } from '../lib/programs.mjs'

function cplusplus(tally, preset) {
  build(preset)
  const { output, code } = run('ctest', ['--preset', preset], { cwd: native, show: false })
  const [, failed, total] = /(\d+) tests failed out of (\d+)/.exec(output) ?? [null, '0', '0']
  if (code !== 0) process.stdout.write(output)
  const wrong = code === 0 ? 0 : Math.max(1, Number(failed))
  tally.add(Number(total) - wrong, wrong, `C++ tests, preset ${preset}`)
}

export async function sanitizers(tally) {
  for (const preset of ['tsan', 'asan']) cplusplus(tally, preset)
  runVitest(tally, 'the addon in Node under AddressSanitizer', 'shm-ring', [], sanitizedAddon())
}
