// Writer threads against a reader process, from starts near each place where narrow arithmetic
// breaks, by one writer that sleeps and wakes and by three at once.
import { join } from 'node:path'
import { Leftovers } from '../lib/leftovers.mjs'
import { build, run } from '../lib/programs.mjs'

const STARTS = [
  ['0', 0n],
  ['2^31', 2n ** 31n - 64n],
  ['2^32', 2n ** 32n - 64n],
  ['2^53', 2n ** 53n - 64n],
  ['2^63', 2n ** 63n - 64n],
  ['2^64', 2n ** 64n - 64n],
]

export async function stress(tally, { minutes = 1 }) {
  const program = join(build('release', 'ring_stress'), 'soak', 'ring_stress')
  const before = new Leftovers()
  const seconds = Math.max(1, Math.round((minutes * 60) / (STARTS.length * 2)))
  let started = 0
  for (const [name, start] of STARTS) {
    for (const writers of [1, 3]) {
      // The two ways in which a reader sleeps take turns.
      const futex = started++ % 4 >= 2 ? 1 : 0
      const args = ['--writers', writers, '--seconds', seconds, '--start', start, '--futex', futex]
      const { code } = run(program, args.map(String))
      tally.count(code === 0, `${writers} writer(s) across position ${name}`)
    }
  }
  await before.count(tally)
}
