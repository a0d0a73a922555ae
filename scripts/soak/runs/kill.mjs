// kill -9 of either side at every named test point, at several passes of each.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Leftovers } from '../lib/leftovers.mjs'
import { build, native, runCounted } from '../lib/programs.mjs'

/** Those that are named in the sources and those that are played: a new one must not be left out. */
function pointsOf(folder, pattern) {
  const files = readdirSync(folder).filter((name) => /\.(cpp|hpp)$/.test(name))
  const found = files.flatMap((name) => [
    ...readFileSync(join(folder, name), 'utf8').matchAll(pattern),
  ])
  return [...new Set(found.map(([, point]) => point))].sort()
}

export async function kill(tally, { rounds = 10 }) {
  const program = join(build('release', 'ring_kill'), 'soak', 'ring_kill')
  const before = new Leftovers()
  const named = pointsOf(join(native, 'src'), /FABRIC_TEST_POINT\("([^"]+)"\)/g)
  const played = pointsOf(join(native, 'soak'), /"([a-z]+\.[a-z_]+)"/g)
  tally.count(
    named.join() === played.join(),
    `${named.length} points are named, and each is played`,
  )
  const args = ['points', '--passes', String(rounds)]
  runCounted(tally, `killed at each point, ${rounds} passes`, program, args)
  await before.count(tally)
}
