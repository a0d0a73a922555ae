// Ten million records of mixed size through three writers and one reader: each arrives once, whole,
// in claim order per writer.
import { join } from 'node:path'
import { Leftovers } from '../lib/leftovers.mjs'
import { build, run } from '../lib/programs.mjs'

export async function records(tally, { rounds = 10_000_000 }) {
  const program = join(build('release', 'ring_stress'), 'soak', 'ring_stress')
  const before = new Leftovers()
  const start = 2n ** 32n - 64n
  const args = ['--writers', 3, '--records', rounds, '--start', start, '--capacity', 64 << 20]
  const { code } = run(program, args.map(String))
  tally.count(code === 0, `${rounds} records, each once, whole, in claim order per writer`)
  await before.count(tally)
}
