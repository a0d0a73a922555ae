// Builds the native half of a comparison with CMake; done again, it costs a fraction of a second.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const require = createRequire(import.meta.url)

function run(command, args) {
  const result = spawnSync(command, args, { encoding: 'utf8' })
  if (result.status === 0) return
  throw new Error(`${command} failed: ${result.error?.message ?? result.stdout + result.stderr}`)
}

/** @returns {string} the folder with the built program and addon. */
export function buildNative() {
  const source = join(import.meta.dirname, '..', 'ring', 'native')
  const build = join(source, 'build')
  const { include_dir: include } = require('node-api-headers')
  const flags = ['-DCMAKE_BUILD_TYPE=Release', `-DNODE_API_INCLUDE=${include}`]
  run('cmake', ['-S', source, '-B', build, ...flags])
  run('cmake', ['--build', build])
  return build
}
