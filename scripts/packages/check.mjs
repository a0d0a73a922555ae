// `npm run test:packages`: builds the binaries, packs every public package and installs the tarballs as
// a user would. It says what it ran, and ends with "N passed, M failed".
//   --install  as root on Debian or Ubuntu, installs the cross compiler and qemu where they lack
//   --x64      leaves the emulated architecture out
//   --prebuilt takes the binaries as they are, all four of a release, and leaves emulation out
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkBinary } from './binaries.mjs'
import * as emulated from './emulated.mjs'
import * as installs from './installs.mjs'
import { checkTarball, pack, publicPackages, removeStale } from './tarballs.mjs'
import {
  assert,
  developerEnvironment,
  root,
  run,
  userEnvironment,
  withoutCompiler,
} from './tools.mjs'

const { values: options } = parseArgs({
  options: {
    install: { type: 'boolean', default: false },
    x64: { type: 'boolean', default: false },
    prebuilt: { type: 'boolean', default: false },
  },
})
const work = mkdtempSync(join(tmpdir(), 'fabric-packages-'))
const started = Date.now()
let [passed, failed] = [0, 0]

/** Runs one check; a later one that needs its result is skipped by its own failure. */
function check(title, body) {
  const from = Date.now()
  try {
    const note = body()
    passed += 1
    const seconds = ((Date.now() - from) / 1000).toFixed(1)
    process.stdout.write(`ok ${seconds} s: ${title}${note ? `: ${note}` : ''}\n`)
  } catch (error) {
    failed += 1
    process.stdout.write(`FAILED: ${title}: ${error.message}\n`)
  }
}

const SHM_RING = join(root, 'packages/shm-ring')
const bare = withoutCompiler(work)
const packages = publicPackages()
const versions = new Map(packages.map(({ manifest }) => [manifest.name, manifest.version]))
const packed = new Map()
const tarballs = () => [...packed.values()].map(({ tarball }) => tarball)
const shmRing = () => packed.get('@fabric/shm-ring')

const cross = process.arch === 'x64' && !options.x64 && !options.prebuilt
const emulation = cross && emulated.canEmulate(options)
const released = ['x64', 'arm64'].flatMap((arch) => [`${arch} glibc`, `${arch} musl`])
const own = emulation ? [`${process.arch} glibc`, 'arm64 glibc'] : [`${process.arch} glibc`]
/** "ARCH LIBC" of each binary. */
const builds = options.prebuilt ? released : own
const fileOf = (build) => {
  const [arch, libc] = build.split(' ')
  return join('prebuilds', `linux-${arch}`, `shm_ring.napi.${libc}.node`)
}

function binaries() {
  if (!options.prebuilt) rmSync(join(SHM_RING, 'prebuilds'), { recursive: true, force: true })
  for (const build of builds)
    check(`prebuilt binary for linux-${build.replace(' ', ', ')}`, () => {
      const [arch, libc] = build.split(' ')
      const env = { ...developerEnvironment(), PREBUILD_ARCH: arch }
      if (!options.prebuilt) run('pnpm', ['run', 'build:prebuilds'], { cwd: SHM_RING, env })
      const needed = checkBinary(join(SHM_RING, fileOf(build)), arch, libc)
      return Object.entries(needed)
        .map(([family, version]) => `${family} <= ${version}`)
        .join(', ')
    })
}

function contents() {
  for (const one of packages)
    check(`tarball of ${one.manifest.name}`, () => {
      const stale = removeStale(one)
      packed.set(one.manifest.name, pack(one, join(work, 'tarballs')))
      const { files, bytes } = checkTarball(packed.get(one.manifest.name), versions)
      const removed = stale.length > 0 ? `; removed from dist, as its source is gone: ${stale}` : ''
      return `${files} files, ${(bytes / 1000).toFixed(0)} kB${removed}`
    })
  check('the ring’s tarball has binaries and sources, and packing leaves nothing behind', () => {
    const sources = ['native/CMakeLists.txt', 'CMakeLists.txt', 'scripts/install.cjs']
    for (const name of [...sources, ...builds.map(fileOf)])
      assert(existsSync(join(shmRing().unpacked, name)), `${name} is missing`)
    assert(!existsSync(join(SHM_RING, 'native')), 'packages/shm-ring/native is left')
  })
}

/** The folder of the first installation, which the emulated architecture uses again. */
const home = join(work, 'with prebuilds') // the space is meant

function prebuilt() {
  check('npm install without a compiler', () => {
    installs.install(home, tarballs(), bare)
    return `${installs.sizeOf(home)} packages`
  })
  check('node-gyp-build takes the prebuilt binary', () => {
    const chosen = installs.chosenBinary(home, bare)
    assert(chosen.includes(`/prebuilds/linux-${process.arch}/shm_ring.napi.glibc.node`), chosen)
    const musl = installs.chosenBinary(home, { ...bare, LIBC: 'musl' })
    const expected = options.prebuilt ? /linux-\w+\/shm_ring\.napi\.musl\.node$/ : /^none: /
    assert(expected.test(musl), `on musl it takes ${musl}`)
    return options.prebuilt ? 'and on musl the other' : 'and on musl refuses it'
  })
  check('the addon works from there', () => installs.checkAddon(home, bare).split('\n').at(-2))
  check('example from there', () => installs.runExample(home, bare, 'ring'))
  check('commands from there', () =>
    installs.checkCommands(home, bare, versions.get('@fabric/broker')),
  )
  check('npm install --ignore-scripts works too', () => {
    const folder = join(work, 'ignore-scripts')
    installs.install(folder, tarballs(), bare, ['--ignore-scripts'])
    return installs.runExample(folder, bare, 'ring')
  })
}

function unsupported() {
  const folder = join(work, 'without-prebuilds')
  check('npm install where no binary fits and no compiler is', () => {
    const plain = installs.withoutPrebuilds(shmRing(), work)
    const others = tarballs().filter((tarball) => tarball !== shmRing().tarball)
    const said = installs.install(folder, [...others, plain], bare, ['--foreground-scripts'])
    assert(said.includes('npm rebuild @fabric/shm-ring'), 'npm does not say how to build')
  })
  check('a ring there is refused clearly', () => installs.ringRefusal(folder, bare))
  check('example there', () => installs.runExample(folder, bare, 'socket'))
  check('--build-from-source without a compiler fails', () => {
    const { ok, output } = installs.rebuild(folder, bare, ['--build-from-source'])
    assert(!ok && output.includes('C++20'), output.slice(-1000))
  })
  check('npm rebuild with a compiler builds from source', () => {
    const { ok, output } = installs.rebuild(folder, userEnvironment())
    assert(ok, output.slice(-4000))
    const chosen = installs.chosenBinary(folder, bare)
    assert(chosen.endsWith('/build/Release/shm_ring.node'), chosen)
    return installs.checkAddon(folder, bare).split('\n').at(-2)
  })
}

/** As far as Linux can play another system: the platform's name is another. */
function elsewhere() {
  const pretend = join(work, 'darwin.cjs')
  writeFileSync(pretend, "Object.defineProperty(process, 'platform', { value: 'darwin' })\n")
  const node = ['--require', pretend]
  check('install step on another system', () => {
    const { ok, output } = installs.installStepElsewhere(home, bare, node)
    assert(ok && output.includes('batches travel by sockets'), output)
  })
  check('a ring there is refused clearly', () => installs.ringRefusal(home, bare, node))
  check('example there', () => installs.runExample(home, bare, 'socket', node))
}

function arm64() {
  check('linux-arm64 under qemu: C++ tests', emulated.runNativeTests)
  check('linux-arm64 under qemu: the installed addon', () => {
    const lines = emulated.checkAddonEmulated(home, bare, emulated.arm64Node()).trim().split('\n')
    return `${lines.at(-1)}; ${lines[0].replace('ok: ', '')}`
  })
  check('linux-arm64 under qemu: example', () =>
    emulated.runExampleEmulated(home, bare, emulated.arm64Node()),
  )
}

try {
  binaries()
  contents()
  prebuilt()
  unsupported()
  elsewhere()
  if (emulation) arm64()
  else if (cross) {
    process.stdout.write(`left out: linux-arm64, which needs ${emulated.HOW_TO}\n`)
    if (options.install) failed += 1
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
const minutes = ((Date.now() - started) / 60_000).toFixed(1)
process.stdout.write(`${passed} passed, ${failed} failed (packages, ${minutes} min)\n`)
process.exit(failed === 0 ? 0 : 1)
