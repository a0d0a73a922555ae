// The study behind the defaults of spans, channel depth and lane order: waste against idle share
// against wait, over queue bounds, a short job and a stream that leaves the consumers time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { linePlot } from '../lib/line-plot.mjs'
import { seeded } from '../lib/random.mjs'
import { loadSet, SETS } from './sets.mjs'
import { simulate, Trace } from './simulated.mjs'
import { repeated, serviceUs } from './stream.mjs'

const CONSUMERS = 4
const BOUNDS = [24, 48, 96, 192]

/** What is asked, and the settings that are compared; the first of each is the default. */
const QUESTIONS = [
  {
    name: 'spans',
    title: 'Spans (spanWaste)',
    settings: [
      ['0, 0.005, 0.05', { spanWaste: [0, 0.005, 0.05] }],
      ['off', { spanWaste: [0] }],
      ['0.01, 0.04, 0.1', { spanWaste: [0.01, 0.04, 0.1] }],
      ['0.04, 0.1, 0.2', { spanWaste: [0.04, 0.1, 0.2] }],
      ['0.1', { spanWaste: [0.1] }],
    ],
  },
  {
    name: 'depth',
    title: 'Channel depth (channelDepth)',
    settings: [2, 1, 3, 4].map((channelDepth) => [String(channelDepth), { channelDepth }]),
  },
  {
    name: 'order',
    title: 'Lane order (laneOrder)',
    settings: [
      ['round-robin', { laneOrder: 'round-robin' }],
      ['affinity', { laneOrder: 'affinity' }],
    ],
  },
]

/** `bound`: batches of queue. A stream that does not saturate shows what an item waits by the rules alone. */
const STREAMS = [
  ...BOUNDS.map((bound) => ({ name: `queue of ${bound}`, bound, load: 1.25, isJob: false })),
  { name: 'short job, 100 batches', bound: 96, load: 1.25, isJob: true },
  { name: 'load 0.8', bound: 96, load: 0.8, isJob: false },
]

const METHOD = [
  'Each set shuffled and repeated to 1,000 batches (the short job: 100), four consumers, load 1.25, batch size 2,048; one setting differs from the defaults at a time. The simulator runs the broker’s own core on virtual time: the figures are the same on every machine and every run.',
  'waste above sort: points of padding more than the set sorted longest first. idle: share of the consumers’ time from the first dispatch until the input ended; at load 0.8 a fifth of it is bound to be idle.',
  'wait: from acceptance until a consumer takes the item, in batch times (2 ms + 500 ns a padded token of a full batch). A queue of 96 batches before four consumers is 24 batch times long by itself.',
]

/** @param {{ quick: boolean, say: (line: string) => void }} options */
export async function compare({ quick, say }) {
  const folder = mkdtempSync(join(tmpdir(), 'fabric-study-'))
  const trace = process.env.FABRIC_AZURE_TRACE
  const left = trace === undefined ? ['wordnet', 'azure'] : ['wordnet']
  const names = Object.keys(SETS).filter((name) => !left.includes(name))
  const found = []
  try {
    for (const name of quick ? names.slice(-1) : names) {
      found.push(...runSet(name, { folder, trace, batches: quick ? 100 : 1000, say }))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  return {
    title: 'Spans, channel depth, lane order: waste, idle share, wait',
    method: METHOD,
    promises: [],
    tables: QUESTIONS.map((question) => tableOf(question, found)),
    charts: QUESTIONS.map((question) => chartOf(question, found)),
    data: found,
  }
}

function runSet(name, { folder, trace, batches, say }) {
  const random = seeded(1)
  const set = loadSet(name, { random, trace })
  const unit = serviceUs(set.tokens) / 1000
  const stream = repeated(set.lengths, batches * set.tokens, random)
  const job = shortJob(stream, 100 * set.tokens)
  const known = new Map()
  const found = []
  const traces = new Map()
  for (const { name: streamName, bound, load, isJob } of STREAMS) {
    const key = `${isJob ? 'job' : 'stream'}-${load}`
    if (!traces.has(key)) {
      const lengths = isJob ? job : stream
      traces.set(key, new Trace(folder, key, set, lengths, { consumers: CONSUMERS, load }))
    }
    for (const question of QUESTIONS) {
      for (const [setting, config] of question.settings) {
        // The default of each question is one and the same run.
        const same = setting === question.settings[0][0] ? streamName : null
        const figures =
          known.get(same) ??
          simulate(traces.get(key).scenario({ ...config, maxQueuedTokens: bound * set.tokens }))
        if (same !== null) known.set(same, figures)
        found.push({
          set: name,
          stream: streamName,
          question: question.name,
          setting,
          aboveSort: (figures.waste - figures.sortWaste) * 100,
          meanWait: figures.meanWaitMs / unit,
          p99Wait: figures.p99WaitMs / unit,
          ...figures,
        })
      }
    }
    say(`${name}, ${streamName}`)
  }
  return found
}

/** The first items of the stream that fill so many tokens. */
function shortJob(stream, least) {
  let total = 0
  const end = stream.findIndex((length) => {
    total += length
    return total >= least
  })
  return end < 0 ? stream : stream.slice(0, end + 1)
}

const runOf = (found, question, set, stream, setting) =>
  found.find(
    (run) =>
      run.question === question &&
      run.set === set &&
      run.stream === stream &&
      run.setting === setting,
  )

function tableOf({ name, title, settings }, found) {
  const rows = []
  for (const set of new Set(found.map((one) => one.set))) {
    for (const { name: stream } of STREAMS) {
      for (const [setting] of settings) {
        const one = runOf(found, name, set, stream, setting)
        rows.push([
          set,
          stream,
          setting,
          one.aboveSort.toFixed(2),
          `${(one.idleShare * 100).toFixed(2)} %`,
          one.meanWait.toFixed(1),
          one.p99Wait.toFixed(1),
          `${one.batches} (${one.sortBatches})`,
          String(one.switches),
          one.p1.toFixed(3),
        ])
      }
    }
  }
  return {
    title,
    head: [
      'set',
      'stream',
      'setting',
      'waste above sort',
      'idle',
      'mean wait',
      'p99 wait',
      'batches (sort)',
      'switches',
      'fill p1',
    ],
    rows,
  }
}

function chartOf({ name, title, settings }, found) {
  const panels = [...new Set(found.map((one) => one.set))].map((set) => ({
    title: set,
    lines: settings.map(([setting]) => ({
      name: setting,
      points: BOUNDS.map((bound) => {
        const one = runOf(found, name, set, `queue of ${bound}`, setting)
        return [one.meanWait, one.aboveSort]
      }),
    })),
  }))
  const x = 'mean wait in batch times (queues of 24, 48, 96, 192 batches)'
  const y = 'points of waste above sort'
  return { file: `study-${name}.svg`, alt: title, svg: linePlot({ title, x, y, panels }) }
}
