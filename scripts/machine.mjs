// What a machine must have before anything is built, and the one line that says what is missing.
// As root on Debian or Ubuntu the missing packages are installed; else the command is named.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0

/** To build and run the product. */
const BUILD_NEEDS = [
  { what: 'a C++20 compiler', ok: () => has('c++') || has('g++') || has('clang++'), apt: 'g++' },
  { what: 'CMake', ok: () => has('cmake'), apt: 'cmake' },
  { what: 'Ninja or Make', ok: () => has('ninja') || has('make'), apt: 'ninja-build' },
]

/** Beside these, to run its tests: the C++ presets name Ninja, one reader of the ring is in Python. */
const TEST_NEEDS = [
  { what: 'Ninja', ok: () => has('ninja'), apt: 'ninja-build' },
  { what: 'Python 3', ok: () => has('python3'), apt: 'python3' },
  {
    what: 'GoogleTest',
    ok: () =>
      existsSync('/usr/include/gtest/gtest.h') || existsSync('/usr/local/include/gtest/gtest.h'),
    apt: 'libgtest-dev',
  },
]

function isDebianRoot() {
  if (process.getuid?.() !== 0 || !has('apt-get')) return false
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : ''
  return /debian|ubuntu/i.test(release)
}

function fail(line) {
  process.stderr.write(`setup: ${line}\n`)
  process.exit(1)
}

/** Returns when the machine has what is needed; ends the process with one line if not. */
export function checkMachine({ say, forTests }) {
  if (process.platform !== 'linux') fail(`Linux is needed, this is ${process.platform}`)
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 17))
    fail(
      `Node >= 20.17 is needed, this is ${process.version}: install it from https://nodejs.org or with nvm install 20`,
    )
  const needs = forTests ? [...BUILD_NEEDS, ...TEST_NEEDS] : BUILD_NEEDS
  const missing = needs.filter((need) => !need.ok())
  if (missing.length === 0) return
  const packages = [...new Set(missing.map((need) => need.apt))].join(' ')
  const command = `apt-get update && apt-get install -y ${packages}`
  const names = missing.map((need) => need.what).join(', ')
  if (!isDebianRoot()) fail(`missing: ${names}. Install with: sudo sh -c '${command}'`)
  say(`missing: ${names}; installing with: ${command}`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const result = spawnSync('sh', ['-c', command], { encoding: 'utf8', env })
  if (result.status !== 0 || missing.some((need) => !need.ok())) {
    fail(`missing: ${names}. Installing failed:\n${result.stdout}${result.stderr}`)
  }
}
