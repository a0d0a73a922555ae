// Makes a fresh checkout ready to run: checks the machine, gets pnpm at its pinned version without
// root, installs from the lockfile and builds native code and TypeScript. Run again it costs seconds.
// It may use nothing but Node itself: it runs before anything is installed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkMachine } from './machine.mjs'

const root = join(import.meta.dirname, '..')
const tools = join(root, '.tools')
const { values: options } = parseArgs({
  options: {
    quiet: { type: 'boolean', default: false },
    /** Also what only the tests need. */
    tests: { type: 'boolean', default: false },
  },
})
const say = (line) => process.stderr.write(`setup: ${line}\n`)

function run(command, args, { env = {}, cwd = root, why }) {
  const result = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 256 << 20,
    env: { ...process.env, TURBO_TELEMETRY_DISABLED: '1', ...env },
  })
  if (result.status === 0) return result.stdout
  process.stderr.write(`${result.stdout ?? ''}${result.stderr ?? ''}`)
  say(`${why} failed (${result.error?.message ?? `exit code ${result.status ?? result.signal}`})`)
  process.exit(1)
}

/** The pinned pnpm, unpacked under .tools/ after its sha512 was compared with package.json's. */
function installPnpm() {
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, version, sha512] = /^pnpm@([\d.]+)\+sha512\.([0-9a-f]+)$/.exec(packageManager) ?? []
  const folder = join(tools, `pnpm-${version}`)
  const bin = join(folder, 'package', 'bin')
  if (!existsSync(join(bin, 'pnpm'))) {
    say(`getting pnpm ${version}`)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    run('npm', ['pack', '--silent', '--pack-destination', folder, `pnpm@${version}`], {
      why: 'fetching pnpm from the npm registry',
    })
    const tarball = join(folder, `pnpm-${version}.tgz`)
    const digest = createHash('sha512').update(readFileSync(tarball)).digest('hex')
    if (digest !== sha512) {
      rmSync(folder, { recursive: true, force: true })
      say(`pnpm ${version} has sha512 ${digest}, package.json pins ${sha512}`)
      process.exit(1)
    }
    run('tar', ['-xzf', tarball, '-C', folder], { why: 'unpacking pnpm' })
    writeFileSync(join(bin, 'pnpm'), '#!/usr/bin/env node\nrequire("./pnpm.cjs")\n', {
      mode: 0o755,
    })
  }
  return bin
}

/** Skips `pnpm install` while lockfile and manifests are those of the last successful one. */
function installPackages(path) {
  const stamp = join(tools, 'installed')
  const inputs = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json']
  const hash = createHash('sha256')
  for (const file of inputs) hash.update(readFileSync(join(root, file)))
  const want = `${hash.digest('hex')} ${process.version}`
  const have = existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
  if (have === want && existsSync(join(root, 'node_modules', '.modules.yaml'))) return
  say('installing packages from the lockfile')
  run('pnpm', ['install', '--frozen-lockfile'], {
    env: { PATH: path, ONNXRUNTIME_NODE_INSTALL: 'skip' },
    why: 'pnpm install',
  })
  writeFileSync(stamp, want)
}

checkMachine({ say, forTests: options.tests })
mkdirSync(tools, { recursive: true })
const path = `${installPnpm()}${delimiter}${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH}`
installPackages(path)
if (!options.quiet || !existsSync(join(tools, 'built'))) say('building native code and TypeScript')
run('turbo', ['run', 'build', '--output-logs=errors-only'], {
  env: { PATH: path },
  why: 'the build',
})
writeFileSync(join(tools, 'built'), '')
