// A copy of the core with one change, and what finds it: seeds of the simulation, then the test file that
// guards the rule, then all of them.
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundleSimulation } from './bundle.mjs'

const root = join(import.meta.dirname, '..', '..', '..')
const core = join(root, 'packages', 'core')
const COPIED = ['src', 'test', 'package.json', 'tsconfig.json', 'vitest.config.ts']
/** Of wall clock: only a mutant that never ends takes so long. */
const TIMEOUT_MS = 300_000

/** What finds the mutation, as one line, or null. */
export async function findMutation(mutation, at, seeds) {
  // Two levels below the root, as the package itself: its tsconfig names the root's.
  const folder = join(root, '.cache', `mutant-${at}`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  try {
    for (const name of COPIED) cpSync(join(core, name), join(folder, name), { recursive: true })
    symlinkSync(join(core, 'node_modules'), join(folder, 'node_modules'))
    change(join(folder, 'src', mutation.file), mutation)
    return (
      (await findBySeeds(folder, seeds)) ??
      (await findByTests(folder, [join('test', mutation.test)])) ??
      (await findByTests(folder, ['--exclude', 'test/simulation.test.ts']))
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Ends the run where the text is not there exactly once: the list is older than the code. */
function change(file, { find, replace, rule, what }) {
  const text = readFileSync(file, 'utf8')
  if (text.split(find).length !== 2)
    throw new Error(`${rule}, ${what}: its text is not once in ${file}: adapt mutations.json`)
  writeFileSync(
    file,
    text.replace(find, () => replace),
  )
}

async function findBySeeds(folder, seeds) {
  const bundle = await bundleSimulation(folder, join(folder, 'bundle'))
  const program = join(import.meta.dirname, 'first-failure.mjs')
  const { code, output } = await run(process.execPath, [program, bundle, String(seeds)], folder)
  if (code === 0) return null
  return code === null
    ? 'simulation: does not end'
    : `simulation: ${output.trim().split('\n').at(-1)}`
}

async function findByTests(folder, args) {
  const vitest = join(root, 'node_modules', '.bin', 'vitest')
  const report = join(folder, 'report.json')
  const flags = ['--bail=1', '--reporter=json', `--outputFile=${report}`]
  const { code } = await run(vitest, ['run', ...flags, ...args], folder)
  if (code === 0) return null
  if (code === null) return 'tests: do not end'
  for (const { name, assertionResults } of JSON.parse(readFileSync(report, 'utf8')).testResults) {
    const failed = assertionResults.find((one) => one.status === 'failed')
    if (failed !== undefined) return `${name.split('/').at(-1)}: ${failed.title}`
  }
  return 'tests: a file that does not load'
}

/** Exit code and output; the code is null when it had to be stopped. */
function run(command, args, cwd) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, timeout: TIMEOUT_MS, killSignal: 'SIGKILL' })
    let output = ''
    child.stdout.on('data', (text) => {
      output += text
    })
    child.stderr.on('data', () => {})
    child.on('close', (code) => resolve({ code, output }))
  })
}
