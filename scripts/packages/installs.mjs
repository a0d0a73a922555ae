// What happens at a user's: tarballs put into an empty folder with plain npm, with and without a
// compiler, with and without a prebuilt binary that fits.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert, attempt, run, userEnvironment } from './tools.mjs'

const INSTALL = ['install', '--no-audit', '--no-fund']
const ring = (folder) => join(folder, 'node_modules/@fabric/shm-ring')
const EXAMPLE = join(import.meta.dirname, 'example.mjs')
const SHM_RING_CHECK = join(import.meta.dirname, '../../packages/shm-ring/scripts/addon-check.mjs')

/** An empty folder with the tarballs installed. Returns npm's output. */
export function install(folder, tarballs, env, options = []) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const { ok, output } = attempt('npm', [...INSTALL, ...options, ...tarballs], { cwd: folder, env })
  assert(ok, `npm install failed:\n${output.slice(-4000)}`)
  copyFileSync(EXAMPLE, join(folder, 'example.mjs'))
  copyFileSync(SHM_RING_CHECK, join(folder, 'addon-check.mjs'))
  return output
}

/** The file that node-gyp-build would load, or its refusal. */
export function chosenBinary(folder, env) {
  const script = `try { console.log(require('node-gyp-build').resolve(process.argv[1])) }
    catch (error) { console.log('none: ' + error.message) }`
  const cwd = folder
  return run('node', ['-e', script, ring(folder)], { cwd, env })
    .replace(folder, '')
    .trim()
}

export function checkAddon(folder, env) {
  return run('node', ['addon-check.mjs', ring(folder)], { cwd: folder, env, timeoutMs: 120_000 })
}

/** Why the ring does not work there, as a program is told; importing the package must not throw. */
export function ringRefusal(folder, env, nodeOptions = []) {
  const script = `import { RingWriter, ringSupport } from '@fabric/shm-ring'
    let code = 'a ring was made'
    try { RingWriter.create({ capacityBytes: 4 << 20 }) } catch (error) { code = error.code }
    console.log(code + ': ' + ringSupport().reason)`
  const args = [...nodeOptions, '--input-type=module', '-e', script]
  const refusal = run('node', args, { cwd: folder, env }).trim()
  assert(refusal.startsWith('RING_PLATFORM_UNSUPPORTED: '), refusal)
  return refusal
}

/** Runs the ten lines; every item must come out once and by the transport that is expected. */
export function runExample(folder, env, transport, nodeOptions = []) {
  const socket = join(folder, 'broker.sock')
  const args = [...nodeOptions, 'example.mjs', socket]
  const output = run('node', args, { cwd: folder, env, timeoutMs: 60_000 })
  return checkExample(output, transport)
}

export function checkExample(output, transport) {
  const line = output.split('\n').find((text) => text.startsWith('{"results"'))
  assert(line !== undefined, `no results:\n${output.slice(-2000)}`)
  const answer = JSON.parse(line)
  const done = answer.results.filter(
    ({ status, result }) => status === 'completed' && result.tokens === 3,
  )
  assert(new Set(done.map(({ id }) => id)).size === 100, `${done.length} of 100 items completed`)
  assert(answer.results.length === 100, `${answer.results.length} results for 100 items`)
  assert(answer.transport === transport, `by ${answer.transport}: ${answer.transportReason}`)
  return `100 items by ${answer.transport} (${answer.transportReason})`
}

export function checkCommands(folder, env, version) {
  for (const command of ['fabric', 'fabric-broker', 'fabric-consumer']) {
    const shown = run(join(folder, 'node_modules/.bin', command), ['--version'], {
      cwd: folder,
      env: { ...env, PATH: `${env.PATH}:/usr/bin` }, // for the #! line's env
    }).trim()
    assert(shown === version, `${command} --version says ${shown}`)
  }
}

/** `npm rebuild`, which the refusal names, with the machine's own compiler. */
export function rebuild(folder, env, options = []) {
  const args = ['rebuild', '@fabric/shm-ring', '--foreground-scripts', ...options]
  return attempt('npm', args, { cwd: folder, env })
}

export function removePrebuilds(folder) {
  rmSync(join(ring(folder), 'prebuilds'), { recursive: true })
}

/** The install step alone, as npm would start it on another platform. */
export function installStepElsewhere(folder, env, nodeOptions) {
  const args = [...nodeOptions, join(ring(folder), 'scripts/install.cjs')]
  return attempt('node', args, { cwd: folder, env })
}

/** Packs the tarball again without its binaries, as for a platform that has none. */
export function withoutPrebuilds(packed, into) {
  const tarball = join(into, 'shm-ring-without-prebuilds.tgz')
  mkdirSync(into, { recursive: true })
  const args = ['-czf', tarball, '--exclude=prebuilds', '-C', packed.unpacked]
  run('tar', [...args, '--transform=s,^\\.,package,', '.'], { env: userEnvironment() })
  return tarball
}

export const sizeOf = (folder) => {
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
  return Object.keys(lock.packages).length - 1
}
