// Builds prebuilds/linux-ARCH/shm_ring.napi.LIBC.node, the file that node-gyp-build loads at a user's.
// PREBUILD_ARCH=arm64 cross-builds from x64; musl is what an Alpine container makes of the same call.
// The npm script is `build:prebuilds`: one named `prebuild` would run before every `build`.
import { mkdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const prebuildify = promisify(createRequire(import.meta.url)('prebuildify'))
const packageRoot = join(import.meta.dirname, '..')
const arch = process.env.PREBUILD_ARCH ?? process.arch
const cross = arch !== process.arch

if (process.platform !== 'linux') throw new Error('prebuilds are made on Linux')
if (cross && !(arch === 'arm64' && process.arch === 'x64'))
  throw new Error(`no cross build from ${process.arch} to ${arch}`)

// One for each architecture: neither the checkout's own build nor another architecture's is touched.
const staging = join(packageRoot, `build-prebuild-${arch}`)
rmSync(staging, { recursive: true, force: true })
mkdirSync(staging, { recursive: true })

await prebuildify({
  cwd: staging,
  out: packageRoot,
  arch,
  napi: true,
  targets: [{ runtime: 'node', target: process.versions.node }],
  name: 'shm_ring.napi',
  tagLibc: true,
  strip: true,
  stripBin: cross ? 'aarch64-linux-gnu-strip' : 'strip',
  shell: true,
  nodeGyp: `"${process.execPath}" "${join(import.meta.dirname, 'cmake-js-shim.mjs')}"`,
})
rmSync(staging, { recursive: true, force: true })
