// npm's install step: nothing where a binary of the package loads, else a build from source. An install
// never fails for want of the ring, because broker and consumer work over sockets without it; the
// first use of a ring then says why there is none. Only an explicit --build-from-source must succeed.
'use strict'
const { spawnSync } = require('node:child_process')
const { existsSync } = require('node:fs')
const path = require('node:path')

const root = path.join(__dirname, '..')
const wanted = process.env.npm_config_build_from_source
const forced = wanted === 'true' || wanted === '@fabric/shm-ring'
const say = (line) => process.stderr.write(`@fabric/shm-ring: ${line}\n`)

function loads() {
  // In a process of its own: a binary for another system may do worse than throw.
  const script = 'require("node-gyp-build")(process.argv[1])'
  return spawnSync(process.execPath, ['-e', script, root], { cwd: root }).status === 0
}

function build() {
  const cmakeJs = path.join(path.dirname(require.resolve('cmake-js/package.json')), 'bin/cmake-js')
  const args = [cmakeJs, 'compile', '--directory', root]
  return spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status === 0 && loads()
}

function main() {
  // In the monorepo the task runner builds.
  if (existsSync(path.join(root, '..', '..', 'pnpm-workspace.yaml'))) return 0
  const system = `${process.platform}-${process.arch}`
  if (process.platform !== 'linux') {
    say(`the shared-memory ring needs Linux, this is ${system}: batches travel by sockets`)
    return forced ? 1 : 0
  }
  if (!forced && loads()) return 0
  if (!forced) say(`no binary in the package loads on ${system}, building from source`)
  if (build()) return 0
  say(
    'the build failed, so there is no shared-memory ring: batches travel by sockets. With a C++20 ' +
      'compiler, CMake >= 3.25 and Ninja or Make, `npm rebuild @fabric/shm-ring --foreground-scripts` ' +
      'builds it',
  )
  return forced ? 1 : 0
}

process.exitCode = main()
