// kill -9 of either side at every named test point, at several passes of each.
import { join } from 'node:path'
import { Leftovers } from '../lib/leftovers.mjs'
import { build, runCounted } from '../lib/programs.mjs'

export async function kill(tally, { rounds = 10 }) {
  const program = join(build('release', 'ring_kill'), 'soak', 'ring_kill')
  const before = new Leftovers()
  const args = ['points', '--passes', String(rounds)]
  runCounted(tally, `killed at each of 18 points, ${rounds} passes`, program, args)
  await before.count(tally)
}
