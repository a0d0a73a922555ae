// Before `pnpm pack`: takes the C++ sources into the package. With --remove, after it.
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const target = join(import.meta.dirname, '..', 'native')
const source = join(import.meta.dirname, '..', '..', '..', 'native')
rmSync(target, { recursive: true, force: true })
if (!process.argv.includes('--remove')) {
  for (const name of ['CMakeLists.txt', 'include', 'src']) {
    cpSync(join(source, name), join(target, name), { recursive: true })
  }
}
