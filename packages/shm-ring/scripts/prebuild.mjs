// Builds prebuilds/linux-<arch>/shm_ring.napi.glibc.node; PREBUILD_ARCH=arm64 cross-compiles.
// Not called `prebuild` in package.json: npm and pnpm would run that before every build.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const prebuildify = promisify(createRequire(import.meta.url)('prebuildify'))
const arch = process.env.PREBUILD_ARCH ?? process.arch
const cross = arch === 'arm64' && process.arch === 'x64' && process.platform === 'linux'
await prebuildify({
  cwd: join(import.meta.dirname, '..'),
  arch,
  napi: true,
  targets: [{ runtime: 'node', target: process.versions.node }],
  name: 'shm_ring.napi',
  tagLibc: process.platform === 'linux',
  strip: true,
  stripBin: cross ? 'aarch64-linux-gnu-strip' : 'strip',
  shell: true,
  nodeGyp: `"${process.execPath}" "${join(import.meta.dirname, 'cmake-js-shim.mjs')}"`,
})
