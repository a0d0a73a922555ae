// Packing on the sets of the design's table, streaming, beside the sorted set and first-come batching.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compare as compareRules, OURS } from '../../packages/simulator/dist/index.js'
import { atLeast, atMost } from '../lib/promises.mjs'
import { seeded } from '../lib/random.mjs'
import { loadSet, SETS } from './sets.mjs'
import { simulate, Trace } from './simulated.mjs'
import { repeated } from './stream.mjs'

const CONSUMERS = [1, 4]
const QUEUE_BATCHES = 96
const AFFINITY_RUN = 16
/** Points of waste above the sorted set: of a stream, of a short job. */
const WASTE_ABOVE_SORT = { stream: 0.007, job: 0.025 }
/** The fill rows of the table hold where no item is longer than this part of the budget. */
const SHORT_PART = 16

const METHOD = [
  'The set shuffled and repeated to so many batches, at load 1.25 into a queue of 96 batches, until the input ends and the tail drains: `fabric simulate --compare` on what `bench/core/workloads.mjs` writes, with the options’ own defaults, batch size 2,048.',
  'Virtual time: the figures are the same on every machine and every run.',
  'A quick run has 100 batches and the bound of a short job.',
  'sort: all items of the set, longest first, packed under the same contract; it cannot stream. first come: what came is packed up to the budget, padded.',
  'Fill leaves out the last consumers x (channelDepth + 1) batches; waste and batches count all.',
  'switches: another run with laneOrder affinity and everything queued from the start, against the greater of 1.2 x the padded lengths that left in batches and batches / affinityRun.',
]

/** @param {{ quick: boolean, say: (line: string) => void }} options */
export async function compare({ quick, say }) {
  const trace = process.env.FABRIC_AZURE_TRACE
  const names = Object.keys(SETS).filter((name) => name !== 'azure' || trace !== undefined)
  if (trace === undefined) say('azure is left out: FABRIC_AZURE_TRACE names no CSV')
  const folder = mkdtempSync(join(tmpdir(), 'fabric-packing-'))
  const runs = []
  try {
    for (const name of names) {
      for (const run of await runSet(name, { folder, quick, trace })) {
        runs.push(run)
        say(`${run.title}: waste ${percent(run.ours.waste)} (sort ${percent(run.sort.waste)})`)
      }
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  return result(runs, quick ? 100 : 1000)
}

async function runSet(name, { folder, quick, trace }) {
  const random = seeded(1)
  const set = loadSet(name, { random, trace })
  const least = (quick ? 100 : 1000) * set.tokens
  const stream = repeated(quick ? set.lengths.slice(0, 20_000) : set.lengths, least, random)
  const runs = []
  for (const consumers of CONSUMERS) {
    const streamed = new Trace(folder, 'streamed', set, stream, { consumers, load: 1.25 })
    const config = { maxQueuedTokens: QUEUE_BATCHES * set.tokens }
    const compared = await compareRules(streamed.scenario(config))
    const queued = new Trace(folder, 'queued', set, stream, { consumers, load: Infinity })
    const affinity = simulate(queued.scenario({ laneOrder: 'affinity', affinityRun: AFFINITY_RUN }))
    const longest = set.lengths.reduce((most, length) => Math.max(most, length), 0)
    runs.push({
      title: `${name}, ${consumers} consumer${consumers > 1 ? 's' : ''}`,
      isShort: longest <= set.tokens / SHORT_PART,
      isJob: quick,
      ours: compared.rules.find(({ rule }) => rule === OURS),
      firstCome: compared.rules[0],
      sort: compared.sort,
      shares: compared.ours,
      affinity,
    })
  }
  return runs
}

function promisesOf({ title, isShort, isJob, ours, sort, shares, affinity }) {
  const above = isJob ? WASTE_ABOVE_SORT.job : WASTE_ABOVE_SORT.stream
  const { p1, p50, p90, p99 } = ours.fill.steady
  const fills = isShort
    ? [atLeast(`${title}: fill p50, p90, p99`, Math.min(p50, p90, p99), 0.98)]
    : []
  return [
    ...fills,
    atLeast(`${title}: fill p1, sort’s - 0.02`, p1, rounded(sort.fill.p1 - 0.02)),
    atLeast(`${title}: fill p50, sort’s - 0.005`, p50, rounded(sort.fill.p50 - 0.005)),
    atMost(`${title}: waste, sort’s + ${above}`, ours.waste, rounded(sort.waste + above)),
    atMost(`${title}: batches over sort’s + 2`, ours.batches / (sort.batches + 2 / 1.015), 1.015),
    atMost(`${title}: idle share`, ours.idleShare, 0.01),
    atLeast(`${title}: share in normal batches`, shares.normalShare, 0.8),
    atMost(`${title}: normal batches closed by the item limit`, shares.normalItemLimit, 0),
    atMost(`${title}: items left`, ours.left, 0),
    atMost(`${title}: switches with affinity`, affinity.switches, switchBound(affinity)),
  ]
}

const rounded = (value) => Number(value.toFixed(4))
const switchBound = ({ paddedLengths, batches }) =>
  Math.round(Math.max(1.2 * paddedLengths, batches / AFFINITY_RUN))

function result(runs, batches) {
  return {
    title: `Packing while streaming, ${batches} batches and more`,
    method: METHOD,
    promises: runs.flatMap(promisesOf),
    tables: [table(runs)],
    charts: [],
    data: runs,
  }
}

const percent = (share) => `${(share * 100).toFixed(2)} %`
const fill = (share) => share.toFixed(3)

function table(runs) {
  return {
    title: 'Beside the sorted set (in brackets) and first-come batching',
    head: [
      'set',
      'fill p1',
      'p50',
      'p90',
      'p99',
      'waste',
      'first come',
      'batches',
      'idle',
      'normal',
      'item limit',
      'switches',
      'wait',
    ],
    rows: runs.map(({ title, ours, firstCome, sort, shares, affinity }) => {
      const { p1, p50, p90, p99 } = ours.fill.steady
      return [
        title,
        `${fill(p1)} (${fill(sort.fill.p1)})`,
        `${fill(p50)} (${fill(sort.fill.p50)})`,
        fill(p90),
        fill(p99),
        `${percent(ours.waste)} (${percent(sort.waste)})`,
        percent(firstCome.waste),
        `${ours.batches} (${sort.batches})`,
        percent(ours.idleShare),
        percent(shares.normalShare),
        String(shares.normalItemLimit),
        `${affinity.switches} of ${switchBound(affinity)}`,
        `${Math.round(ours.meanWaitUs / 1000)} ms`,
      ]
    }),
  }
}
