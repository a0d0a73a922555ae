// kill -9 of either side at every named test point, at several passes of each.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Leftovers } from '../lib/leftovers.mjs'
import { build, native, runCounted } from '../lib/programs.mjs'

const namesIn = (file, pattern) =>
  [...readFileSync(file, 'utf8').matchAll(pattern)].map(([, point]) => point)
const sorted = (names) => [...new Set(names)].sort().join()

/** A point that is new in the sources must not be left out of the list that is played. */
function allPlayed(tally) {
  const sources = readdirSync(join(native, 'src')).filter((name) => name.endsWith('.cpp'))
  const named = sources.flatMap((name) =>
    namesIn(join(native, 'src', name), /FABRIC_TEST_POINT\("([^"]+)"\)/g),
  )
  const played = namesIn(join(native, 'soak', 'killing.hpp'), /"([a-z]+\.[a-z_]+)"/g)
  tally.count(sorted(named) === sorted(played), `each of ${played.length} test points is played`)
}

export async function kill(tally, { rounds = 10 }) {
  const program = join(build('release', 'ring_kill'), 'soak', 'ring_kill')
  const before = new Leftovers()
  allPlayed(tally)
  const args = ['points', '--passes', String(rounds)]
  runCounted(tally, `killed at each point, ${rounds} passes`, program, args)
  await before.count(tally)
}
