// Packing every public package, and what a tarball must and must not hold.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { assert, attempt, developerEnvironment, root, run } from './tools.mjs'

const read = (file) => readFileSync(file, 'utf8')
const readJson = (file) => JSON.parse(read(file))
const dependenciesOf = (manifest) => ({
  ...manifest.dependencies,
  ...manifest.optionalDependencies,
  ...manifest.peerDependencies,
})

/** Every file below a folder, as paths relative to it. */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort()
}

export function publicPackages() {
  return readdirSync(join(root, 'packages'))
    .filter((name) => existsSync(join(root, 'packages', name, 'package.json')))
    .map((name) => ({ folder: join(root, 'packages', name) }))
    .map(({ folder }) => ({ folder, manifest: readJson(join(folder, 'package.json')) }))
    .filter(({ manifest }) => !manifest.private)
}

/** What the compiler made of sources that are gone; it never removes it, and a pack would take it. */
export function removeStale({ folder }) {
  const dist = join(folder, 'dist')
  const stale = filesIn(dist).filter((name) => {
    const source = name.replace(/(\.d\.ts|\.js(\.map)?)$/, '.ts')
    return name !== '.tsbuildinfo' && !existsSync(join(folder, 'src', source))
  })
  for (const name of stale) rmSync(join(dist, name))
  return stale
}

/** Packs as a publish would, and unpacks beside it to look inside. */
export function pack({ folder, manifest }, into) {
  const env = developerEnvironment()
  run('pnpm', ['pack', '--pack-destination', into], { cwd: folder, env })
  const tarball = join(
    into,
    `${manifest.name.replace('@', '').replace('/', '-')}-${manifest.version}.tgz`,
  )
  const unpacked = join(into, manifest.name)
  mkdirSync(unpacked, { recursive: true })
  run('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1'])
  return { name: manifest.name, folder, tarball, unpacked }
}

function checkManifest(packed, versions) {
  const manifest = readJson(join(packed.unpacked, 'package.json'))
  assert(!JSON.stringify(manifest).includes('workspace:'), 'workspace: is left in package.json')
  for (const [name, range] of Object.entries(dependenciesOf(manifest))) {
    if (!name.startsWith('@fabric/')) continue
    assert(versions.has(name), `${name} is a dependency and is not published`)
    assert(range === `^${versions.get(name)}`, `${name} is wanted as ${range}`)
  }
  assert(manifest.license === 'Apache-2.0', 'no licence')
  return manifest
}

/** Every source has its module and its types, and there is no module without a source. */
function checkCompiled(packed, files) {
  const sources = filesIn(join(packed.folder, 'src')).filter((name) => name.endsWith('.ts'))
  const modules = sources.map((name) => `dist/${name.replace(/\.ts$/, '')}`)
  const expected = modules.flatMap((name) => [`${name}.js`, `${name}.d.ts`, `${name}.js.map`])
  const found = files.filter((name) => name.startsWith('dist/') && /\.(js|map|ts)$/.test(name))
  const missing = expected.filter((name) => !found.includes(name))
  const stale = found.filter((name) => !expected.includes(name))
  assert(missing.length === 0, `not built: ${missing}`)
  assert(stale.length === 0, `without a source: ${stale}`)
}

const IMPORT = /^(?:import|(?:import|export)\b[^'"]*?\bfrom) '([^']+)';?$/gm

/** Every import leads to a file of the package, to Node or to a declared dependency. */
function checkImports(packed, files, manifest) {
  const declared = new Set([manifest.name, ...Object.keys(dependenciesOf(manifest))])
  const modules = files.filter((name) => /^(dist|bin)\/.*\.js$/.test(name))
  for (const name of modules) {
    const text = read(join(packed.unpacked, name))
    for (const [, target] of text.matchAll(IMPORT)) {
      if (target.startsWith('.'))
        assert(files.includes(join(dirname(name), target)), `${name} imports ${target}`)
      else if (!target.startsWith('node:') && !builtinModules.includes(target)) {
        const [scope, rest] = target.split('/')
        const dependency = target.startsWith('@') ? `${scope}/${rest}` : scope
        assert(declared.has(dependency), `${name} imports ${dependency}, which is not declared`)
      }
    }
  }
}

function checkEntries(manifest, files) {
  const entries = Object.values(manifest.exports).flatMap((entry) => Object.values(entry))
  for (const entry of [...entries, ...Object.values(manifest.bin ?? {})])
    assert(files.includes(entry.replace('./', '')), `${entry} is missing`)
  for (const wanted of ['LICENSE', 'package.json'])
    assert(files.includes(wanted), `${wanted} is missing`)
}

/** Where this machine keeps things, and the registry that it uses: nothing of it may be packed. */
function machineWords() {
  const registry = attempt('npm', ['config', 'get', 'registry']).stdout.trim()
  const host = URL.canParse(registry) ? new URL(registry).host : ''
  const home = homedir()
  return [
    root,
    // A home as short as /root is found in words that mean no path of ours.
    ...(home.split('/').length > 2 ? [home] : []),
    ...(host === '' ? [] : [host]),
  ]
}

function checkContents(packed, files) {
  const words = machineWords()
  for (const name of files) {
    const bad =
      /(^|\/)(tests?|__tests__|node_modules|build)\/|\.tsbuildinfo$|\.test\.|(^|\/)\.(?!npmignore)/
    assert(!bad.test(name), `${name} does not belong into the tarball`)
    assert(!/^src\//.test(name), `${name}: sources travel inside the maps`)
    const bytes = readFileSync(join(packed.unpacked, name), 'latin1')
    for (const word of words) assert(!bytes.includes(word), `${name} names ${word}`)
    if (name.endsWith('.js.map'))
      for (const source of JSON.parse(bytes).sources)
        assert(source.startsWith('.'), `${name} points at ${source}`)
  }
}

export function checkTarball(packed, versions) {
  const files = filesIn(packed.unpacked)
  const manifest = checkManifest(packed, versions)
  checkEntries(manifest, files)
  checkCompiled(packed, files)
  checkImports(packed, files, manifest)
  checkContents(packed, files)
  return { files: files.length, bytes: statSync(packed.tarball).size }
}
