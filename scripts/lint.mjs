// Style as a test: formatting and lint, the direction of imports, the types of the tests.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { checkLintRules } from './lint/rules.mjs'

const root = join(import.meta.dirname, '..')
const bin = (name) => join(root, 'node_modules', '.bin', name)
const run = (command, args) =>
  spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status === 0

let failed = 0
const check = (what, ok) => {
  process.stdout.write(`${ok ? 'ok' : 'FAILED'}: ${what}\n`)
  if (!ok) failed += 1
}

check(
  'biome: format and lint',
  run(bin('biome'), ['ci', '--error-on-warnings', '--colors=off', '.']),
)
const broken = checkLintRules(root, bin('biome'))
for (const line of broken) process.stdout.write(`  ${line}\n`)
check('rules of import direction and purity bite', broken.length === 0)
check('types of the tests', run(bin('tsc'), ['-p', 'tsconfig.test.json']))
process.exit(failed === 0 ? 0 : 1)
