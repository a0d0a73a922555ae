// Runs where the package is installed from the registry: builds the addon if no prebuilt one loads.
'use strict'
const { spawnSync } = require('node:child_process')
const { existsSync } = require('node:fs')
const path = require('node:path')

const root = path.join(__dirname, '..')
// In the monorepo turbo builds.
if (existsSync(path.join(root, '..', '..', 'pnpm-workspace.yaml'))) process.exit(0)
// Elsewhere the package still installs: its import works, and using it says what it needs.
if (process.platform !== 'linux') process.exit(0)
if (process.env.npm_config_build_from_source !== 'true') {
  // In a process of its own: a binary that does not fit may crash.
  const load = 'require("node-gyp-build")(process.argv[1])'
  const tried = spawnSync(process.execPath, ['-e', load, root], { cwd: root })
  if (tried.status === 0) process.exit(0)
  console.error('@fabric/shm-ring: no prebuilt binary loads here, building from source')
}
const cmakeJs = path.join(path.dirname(require.resolve('cmake-js/package.json')), 'bin', 'cmake-js')
const built = spawnSync(process.execPath, [cmakeJs, 'compile', '--directory', root], {
  cwd: root,
  stdio: 'inherit',
})
process.exit(built.status ?? 1)
