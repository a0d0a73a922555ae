// A tarball holds nothing outside its package, so the C++ sources are copied beside it for packing and
// taken away again (`--remove`) afterwards.
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const packageRoot = join(import.meta.dirname, '..')
const from = join(packageRoot, '../../native')
const to = join(packageRoot, 'native')

rmSync(to, { recursive: true, force: true })
if (!process.argv.includes('--remove')) {
  for (const part of ['CMakeLists.txt', 'include', 'src'])
    cpSync(join(from, part), join(to, part), { recursive: true })
}
