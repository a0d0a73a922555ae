// Durable acceptance of items, and packing from disk, against what else would keep them: Redis Streams
// and SQLite.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { barChart } from '../lib/bar-chart.mjs'
import { atLeast } from '../lib/promises.mjs'
import { pairedRatio, summary } from '../lib/stats.mjs'
import { inTurns } from '../lib/turns.mjs'
import { IN_FLIGHT, WARM_ITEMS } from './items.mjs'
import { ours } from './ours.mjs'
import { redis, redisVersion } from './redis.mjs'
import { buildSqlite, sqlite } from './sqlite.mjs'

const GROUPS = [64, 256, 1000]
/** By group size, over the best of the others. */
const BOUNDS = { 256: 2, 1000: 3 }
const SYNCS = ['always', 'relaxed']
const NAMES = {
  always: { ours: 'fabric', redis: 'Redis, fsync always', sqlite: 'SQLite WAL, FULL' },
  relaxed: { ours: 'fabric, relaxed', redis: 'Redis, everysec', sqlite: 'SQLite WAL, NORMAL' },
}

const METHOD = [
  'Items of 256 tokens (1 KiB) with ids of 15 bytes, made before the clock starts. A group is one submission: one append of ours, one MULTI/EXEC of XADD, one transaction of INSERT. Accepted means answered.',
  `Ours and Redis have ${IN_FLIGHT} groups under way; SQLite is called directly, one transaction after the other.`,
  'Ours looks every id up, keeps it, and keeps counts by job and shape, with a thread between; Redis and SQLite look nothing up and have no index of ids.',
  'Packing: batches of as many items are read and settled. Ours marks the items, keeps a result of 64 bytes each and removes what is settled, four batches under way; SQLite deletes the rows and keeps results; Redis reads for a consumer group and acknowledges, and keeps no results and all items.',
  'Relaxed: ours is synced within 100 ms and loses that much when the broker is killed too; Redis syncs every second; SQLite NORMAL syncs at checkpoints. Packing is not measured relaxed.',
  `Each run stores and settles ${WARM_ITEMS} items before the clock starts. Each has a new folder on the same file system (TMPDIR). Ratios are medians of the ratio within a round, to the best of the others in that round.`,
  'NATS JetStream is left out: its server syncs always from 2.10 on, and Debian has 2.9.',
]

/** @param {{ quick: boolean, say: (line: string) => void }} options */
export async function compare({ quick, say }) {
  const { contestants, absent } = peers(say)
  const items = quick ? 10_000 : 200_000
  const folder = mkdtempSync(join(tmpdir(), 'fabric-bench-store-'))
  try {
    const runs = SYNCS.flatMap((sync) =>
      GROUPS.flatMap((group) =>
        contestants.map(([name, run]) => ({
          key: keyOf(sync, group, name),
          run: () => run({ folder, items, group, sync }),
        })),
      ),
    )
    for (const { run } of runs.slice(0, contestants.length)) await run()
    const times = await inTurns(runs, quick ? 1 : 4, say)
    return result(
      times,
      contestants.map(([name]) => name),
      absent,
      items,
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const keyOf = (sync, group, name) => `${sync} ${group} ${name}`

function peers(say) {
  const contestants = [['ours', ours]]
  const absent = []
  const redisFound = redisVersion()
  if (redisFound === null)
    absent.push('Redis: redis-server is not installed (apt-get install redis-server)')
  else contestants.push(['redis', redis])
  const sqliteMissing = buildSqlite()
  if (sqliteMissing !== null) absent.push(`SQLite: ${sqliteMissing}`)
  else contestants.push(['sqlite', sqlite])
  for (const line of absent) say(`absent: ${line}`)
  if (redisFound !== null) say(`Redis ${redisFound}`)
  return { contestants, absent }
}

function result(times, names, absent, items) {
  const of = (sync, group, name, what) =>
    times.get(keyOf(sync, group, name)).map((found) => found[what])
  const ratio = (sync, group, what) => {
    const others = names.slice(1).map((name) => of(sync, group, name, what))
    if (others.length === 0) return Number.NaN
    const best = others[0].map((_, round) => Math.max(...others.map((values) => values[round])))
    return pairedRatio(of(sync, group, 'ours', what), best).median
  }
  const bounds = Object.entries(BOUNDS).map(([group, bound]) => [Number(group), bound])
  const accepts = SYNCS.flatMap((sync) =>
    bounds.map(([group, bound]) =>
      atLeast(
        `accepted in groups of ${group}, sync ${sync}, over the best of the others`,
        ratio(sync, group, 'accept'),
        bound,
      ),
    ),
  )
  const packs = bounds.map(([group, bound]) =>
    atLeast(
      `read and settled in batches of ${group}, over the best of the others`,
      ratio('always', group, 'pack'),
      bound,
    ),
  )
  const promises = [...accepts, ...packs]
  const accepted = SYNCS.map((sync) =>
    table(sync, names, (group, name) => of(sync, group, name, 'accept')),
  )
  const packed = packTable(names, (group, name) => of('always', group, name, 'pack'))
  return {
    title: 'Durable acceptance and packing from disk',
    method: [...METHOD, `${items} items a run.`, ...absent.map((line) => `Absent: ${line}.`)],
    promises,
    tables: [...accepted, packed],
    charts: [chart(names, (group, name) => of('always', group, name, 'accept'))],
    data: Object.fromEntries(times),
  }
}

const thousands = ({ median, p10, p90 }) =>
  `${(median / 1000).toFixed(1)} (${(p10 / 1000).toFixed(1)}-${(p90 / 1000).toFixed(1)})`

function table(sync, names, of) {
  return {
    title: `Thousand items accepted per second, sync ${sync}`,
    head: ['', ...GROUPS.map((group) => `groups of ${group}`)],
    rows: names.map((name) => [
      NAMES[sync][name],
      ...GROUPS.map((group) => thousands(summary(of(group, name)))),
    ]),
  }
}

function packTable(names, of) {
  return {
    title: 'Thousand items read and settled per second, synced',
    head: ['', ...GROUPS.map((group) => `batches of ${group}`)],
    rows: names.map((name) => [
      NAMES.always[name],
      ...GROUPS.map((group) => thousands(summary(of(group, name)))),
    ]),
  }
}

function chart(names, of) {
  const title = 'Items accepted per second, synced'
  return {
    file: 'store.svg',
    alt: title,
    svg: barChart({
      title,
      unit: 'thousands, p10 to p90',
      groups: GROUPS.map((group) => `groups of ${group}`),
      series: names.map((name) => NAMES.always[name]),
      bars: GROUPS.map((group) =>
        names.map((name) => summary(of(group, name).map((value) => value / 1000))),
      ),
    }),
  }
}
