// Running commands for the checks, in an environment that is a user's and not this repository's.
import { spawnSync } from 'node:child_process'
import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

// `npm run` hands its own settings to what it starts, and a nested npm would take them for the user's.
// What says where packages come from stays.
const KEPT = /^npm_config_(registry|userconfig|globalconfig|cache|cafile|strict_ssl|.*proxy)$/i
const DROPPED = /^(npm_|pnpm_|INIT_CWD$|NODE_OPTIONS$|PREBUILD|LIBC$|CMAKE|CC$|CXX$|FABRIC_)/i

export function userEnvironment(changes = {}) {
  const kept = Object.entries(process.env).filter(
    ([name]) => KEPT.test(name) || !DROPPED.test(name),
  )
  return { ...Object.fromEntries(kept), ...changes }
}

/** Status and output of a command, which it never throws for. */
export function attempt(command, args, { cwd = root, env = userEnvironment(), timeoutMs } = {}) {
  const result = spawnSync(command, args, {
    cwd,
    env,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  })
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`
  return { ok: result.status === 0, stdout: result.stdout ?? '', output }
}

/** The standard output of a command that has to succeed. */
export function run(command, args, options) {
  const { ok, stdout, output } = attempt(command, args, options)
  if (!ok) throw new Error(`${command} ${args.join(' ')} failed:\n${output.slice(-4000)}`)
  return stdout
}

export const has = (command) => attempt('sh', ['-c', `command -v ${command}`]).ok

export function assert(condition, message) {
  if (!condition) throw new Error(message)
}

const where = (command) => realpathSync(run('sh', ['-c', `command -v ${command}`]).trim())

/** The environment of a machine that has Node, npm and a shell, and no compiler and no CMake. */
export function withoutCompiler(folder, changes = {}) {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  for (const [name, target] of [
    ['node', process.execPath],
    ['npm', where('npm')],
    ['sh', where('sh')],
  ])
    symlinkSync(target, join(bin, name))
  const env = userEnvironment({ PATH: bin, ...changes })
  for (const name of ['cmake', 'c++', 'g++', 'gcc', 'cc', 'clang', 'make', 'ninja', 'python3'])
    assert(!attempt('sh', ['-c', `command -v ${name}`], { env }).ok, `${name} is on the bare PATH`)
  return env
}

/** Has pnpm on its PATH, as the set-up fetched it, for packing. */
export function developerEnvironment() {
  const { packageManager } = JSON.parse(run('cat', [join(root, 'package.json')]))
  const [, version] = /^pnpm@([\d.]+)/.exec(packageManager)
  const pnpm = join(root, '.tools', `pnpm-${version}`, 'package', 'bin')
  return userEnvironment({ PATH: `${pnpm}${delimiter}${process.env.PATH}` })
}
