// Proves that the rules of direction and purity bite: each line below is put into a file where it is
// forbidden (or allowed) and linted. A rule that was switched off by accident fails the lint step.
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const CASES = [
  ['packages/core/src', "import 'node:fs'", false],
  ['packages/core/src', "import '@fabric/protocol'", false],
  ['packages/core/src', "import '../broker.js'", false],
  ['packages/core/src', "import './types.js'", true],
  ['packages/core/src', 'export const chance = Math.random()', false],
  ['packages/core/src', 'export const clock = Date.now()', false],
  ['packages/core/src', 'export const clock = performance.now()', false],
  ['packages/core/src', 'export const later = new Promise(() => {})', false],
  ['packages/core/src', 'setTimeout(() => {}, 1)', false],
  ['packages/broker/src', "import '@fabric/client'", false],
  ['packages/broker/src', "import '@fabric/core'", true],
  ['packages/broker/src', "import '@fabric/shm-ring'", true],
  ['packages/consumer/src', "import '@fabric/broker'", false],
  ['packages/consumer/src', "import '@fabric/protocol'", true],
  ['packages/client/src', "import '@fabric/shm-ring'", false],
  ['packages/client/src', "import '@fabric/simulator'", true],
  ['packages/simulator/src', "import '@fabric/broker'", false],
  ['packages/simulator/src', "import '@fabric/core'", true],
  ['packages/simulator/src', 'export const clock = Date.now()', false],
  ['packages/protocol/src', "import '@fabric/broker'", false],
  ['packages/shm-ring/src', "import '@fabric/protocol'", false],
]

/** Messages about rules that do not bite, or bite too much; empty when all is well. */
export function checkLintRules(root, biome) {
  return CASES.flatMap(([folder, line, allowed], i) => {
    const file = join(root, folder, `zz-lint-probe-${i}.ts`)
    writeFileSync(file, `${line}\n`)
    try {
      const result = spawnSync(biome, ['lint', file], { cwd: root, encoding: 'utf8' })
      const refused = /noRestricted|plugin/.test(result.stderr + result.stdout)
      if (refused !== allowed) return []
      return [`${folder}: "${line}" is ${allowed ? 'refused' : 'not refused'} by the lint rules`]
    } finally {
      rmSync(file, { force: true })
    }
  })
}
