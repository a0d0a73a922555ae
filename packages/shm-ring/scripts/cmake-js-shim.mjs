// prebuildify starts a "node-gyp" with node-gyp's arguments, of which cmake-js understands two. Runs in
// the staging folder that prebuild.mjs names, so that build/Release of the checkout stays as it is.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: { arch: { type: 'string' }, debug: { type: 'boolean' } },
})
const packageRoot = join(import.meta.dirname, '..')
const cmakeJs = createRequire(import.meta.url).resolve('cmake-js/package.json')
const args = [
  join(dirname(cmakeJs), 'bin', 'cmake-js'),
  'rebuild',
  ...['--directory', packageRoot],
  ...['--out', join(process.cwd(), 'build')],
  ...['--config', values.debug ? 'Debug' : 'Release'],
  ...['--arch', values.arch ?? process.arch],
  // CI's own builds fail on a warning; a release is not held up by what another compiler warns of.
  // cmake-js takes this form only, with no space before the value.
  '--CDFABRIC_WERROR=OFF',
]
if (values.arch === 'arm64' && process.arch === 'x64') {
  const toolchain = join(packageRoot, '../../native/cmake/aarch64-linux-gnu.cmake')
  args.push(`--CDCMAKE_TOOLCHAIN_FILE=${toolchain}`)
}
process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1)
