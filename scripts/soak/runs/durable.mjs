// Processes killed, a disk that has lost writes, a producer far too fast.
// All are tests of `npm test` with more rounds; what each run counted is told line by line.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runVitest } from '../lib/programs.mjs'

/** Runs one file of tests, which writes a line for each thing that it counted. */
function reported(tally, what, package_, file, environment) {
  const folder = mkdtempSync(join(tmpdir(), 'soak-'))
  const report = join(folder, 'report')
  runVitest(tally, what, package_, [file], { ...environment, FABRIC_REPORT: report })
  try {
    process.stdout.write(readFileSync(report, 'utf8'))
  } catch {
    tally.count(false, `${what}: nothing was counted`)
  }
  rmSync(folder, { recursive: true, force: true })
}

/** Rounds are of each kind, within one job each: the broker, consumers, both, the client, all of them. */
export function brokerKill(tally, { rounds = 200, items = 100_000, seeds = 1, kinds }) {
  const what = `jobs of ${items} items under ${rounds} times kill -9`
  reported(tally, what, 'demo', 'test/durable/kill.test.ts', {
    FABRIC_KILL_ROUNDS: String(rounds),
    FABRIC_KILL_ITEMS: String(items),
    FABRIC_SEED: String(seeds),
    ...(kinds === undefined ? {} : { FABRIC_KILL_KINDS: kinds }),
  })
}

export function memoryFlood(tally, { items = 2_000_000 }) {
  const what = `${items} items offered to a small queue in memory`
  const environment = { FABRIC_FLOOD_ITEMS: String(items) }
  reported(tally, what, 'demo', 'test/durable/flood.test.ts', environment)
}

export function diskTorn(tally, { rounds = 1000, seeds = 1 }) {
  const what = `${rounds} disks with torn, dropped and reordered writes`
  reported(tally, what, 'broker', 'test/durable/torn.test.ts', {
    FABRIC_TORN_ROUNDS: String(rounds),
    FABRIC_SEED: String(seeds),
  })
}
