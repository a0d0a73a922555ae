// prebuildify calls this as if it were node-gyp. Of its arguments only these two mean something to
// cmake-js, which would take --target for the name of a CMake target.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: { arch: { type: 'string' }, debug: { type: 'boolean' } },
})
const require = createRequire(import.meta.url)
const cmakeJs = join(dirname(require.resolve('cmake-js/package.json')), 'bin', 'cmake-js')
const args = [cmakeJs, 'rebuild', '--config', values.debug ? 'Debug' : 'Release']
args.push('--arch', values.arch ?? process.arch)
if (values.arch === 'arm64' && process.arch === 'x64' && process.platform === 'linux') {
  const toolchain = join(import.meta.dirname, '../../../native/cmake/aarch64-linux-gnu.cmake')
  args.push(`--CDCMAKE_TOOLCHAIN_FILE=${toolchain}`)
}
const run = spawnSync(process.execPath, args, {
  stdio: 'inherit',
  cwd: join(import.meta.dirname, '..'),
})
process.exit(run.status ?? 1)
