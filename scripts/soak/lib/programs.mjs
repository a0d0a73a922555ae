// Builds and runs the native programs.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../../..')
export const native = join(root, 'native')

/** Ends the run when a tool is missing or sources do not compile: nothing can be told then. */
function must(command, args, options) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    ...options,
  })
  if (status === 0) return
  process.stdout.write(`${stdout ?? ''}${stderr ?? ''}`)
  process.stderr.write(`${command} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}\n`)
  process.exit(2)
}

/** The folder of what a preset built. */
export function build(preset, ...targets) {
  must('cmake', ['--preset', preset], { cwd: native })
  const only = targets.length > 0 ? ['--target', ...targets] : []
  must('cmake', ['--build', '--preset', preset, ...only], { cwd: native })
  return join(native, 'build', preset)
}

/** Output and exit code; both streams come through as they are written when `show` is true. */
export function run(command, args, { env = {}, cwd = root, show = true } = {}) {
  const { status, signal, stdout } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', show === true ? 'inherit' : 'pipe', 'inherit'],
    maxBuffer: 64 << 20,
    env: { ...process.env, ...env },
  })
  return { code: status ?? signal, output: stdout ?? '' }
}

/** Counts of "N passed, N failed", a program's last line; no such line is one failure. */
export function runCounted(tally, what, command, args, options) {
  const { code, output } = run(command, args, { ...options, show: false })
  process.stdout.write(output.replace(/^\d+ passed, \d+ failed\n/m, ''))
  const [, passed, failed] = /(\d+) passed, (\d+) failed\n$/.exec(output) ?? [null, '0', '1']
  const wrong = code === 0 ? Number(failed) : Math.max(1, Number(failed))
  tally.add(Number(passed), wrong, what)
}

/** Tests of a package, counted. @param {string[]} files none = all of them */
export function runVitest(tally, what, package_, files, env) {
  const report = join(root, '.cache', 'soak', `${package_}.json`)
  rmSync(report, { force: true })
  const flags = ['--reporter=json', `--outputFile=${report}`, '--testTimeout=300000']
  const { code, output } = run(
    join(root, 'node_modules', '.bin', 'vitest'),
    ['run', ...flags, ...files],
    { cwd: join(root, 'packages', package_), env, show: false },
  )
  if (code !== 0) process.stdout.write(output)
  const found = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : {}
  const wrong = code === 0 ? 0 : Math.max(1, found.numFailedTests ?? 0)
  if (wrong > 0) for (const name of failures(found)) process.stdout.write(`       ${name}\n`)
  tally.add(found.numPassedTests ?? 0, wrong, what)
}

const failures = ({ testResults = [] }) =>
  testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
    .map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join(' ')}`)

/** As cmake-js builds it, with sanitizers; `environment` makes Node load it. */
export function sanitizedAddon() {
  const package_ = join(root, 'packages', 'shm-ring')
  const folder = join(root, '.cache', 'asan')
  const args = ['compile', '-O', join(folder, 'build'), '--CDFABRIC_SANITIZE=address,undefined']
  must(join(package_, 'node_modules', '.bin', 'cmake-js'), args, { cwd: package_ })
  const libraries = ['libasan.so', 'libubsan.so'].map((name) =>
    spawnSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' }).stdout.trim(),
  )
  if (!libraries.every(existsSync)) throw new Error(`no such file: ${libraries}`)
  return {
    LD_PRELOAD: libraries.join(':'),
    // Node gives back little at its end, so leaks are told by the tests' own counts.
    ASAN_OPTIONS: 'detect_leaks=0:halt_on_error=1:handle_segv=0:allow_user_segv_handler=1',
    UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
    '@FABRIC/SHM_RING_PREBUILD': folder,
  }
}
