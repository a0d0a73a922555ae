// What a prebuilt binary may ask of the machine that loads it.
import { assert, run } from './tools.mjs'

// Node 20's own Linux builds need glibc 2.28. Of the systems that have it the oldest compilers' runtime
// is GCC 8's (Debian 10, RHEL 8).
const NEWEST = { GLIBC: '2.28', GLIBCXX: '3.4.25', CXXABI: '1.3.11', GCC: '8.0.0' }
const EXPORTS = ['napi_register_module_v1', 'node_api_module_get_api_version_v1']
const LIBRARIES = {
  glibc: /^(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-.*)\.so\.\d+$/,
  musl: /^(libc\.musl-\w+|libstdc\+\+|libgcc_s)\.so\.\d+$/,
}

const OBJDUMP = { x64: 'x86_64-linux-gnu-objdump', arm64: 'aarch64-linux-gnu-objdump' }
const FORMAT = { x64: 'elf64-x86-64', arm64: 'elf64-littleaarch64' }

function isNewer(version, limit) {
  const [left, right] = [version, limit].map((text) => text.split('.').map(Number))
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}

/** The objdump that reads this architecture's files here. */
export const objdumpOf = (arch) => (arch === process.arch ? 'objdump' : OBJDUMP[arch])

/** Throws for a symbol of a newer library, an export too many or an unknown library. */
export function checkBinary(file, arch, libc = 'glibc') {
  const objdump = objdumpOf(arch)
  const symbols = run(objdump, ['-T', file])
  assert(symbols.includes(FORMAT[arch]), `${file} is not for ${arch}`)
  const needed = {}
  for (const [, family, version] of symbols.matchAll(/\((GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\)/g)) {
    assert(!isNewer(version, NEWEST[family]), `${file} needs ${family}_${version}`)
    if (isNewer(version, needed[family] ?? '0')) needed[family] = version
  }
  const defined = symbols.split('\n').filter((line) => / g|^\S+ +[wu] /.test(line))
  const exported = defined
    .filter((line) => !line.includes('*UND*') && !line.includes('*ABS*'))
    .map((line) => line.trim().split(/\s+/).at(-1))
  assert(
    exported.sort().join() === EXPORTS.join(),
    `${file} exports ${exported.join(', ') || 'nothing'}`,
  )
  for (const [, library] of run(objdump, ['-p', file]).matchAll(/NEEDED +(\S+)/g))
    assert(LIBRARIES[libc].test(library), `${file} needs ${library}`)
  return needed
}
