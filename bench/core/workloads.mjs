// node bench/core/workloads.mjs NAME --out FOLDER: a trace of lengths and scenarios that run it.
//
// NAME is one of the sets of sets.mjs; azure needs --trace FILE. FOLDER gets, for 1 and 4 consumers,
// NAME-1.csv and NAME-1.json, and for azure also azure-as-is.json: the trace in its own time.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seeded } from '../lib/random.mjs'
import { loadSet, SETS } from './sets.mjs'
import { repeated, scenarioOf, writeScenario, writeTrace } from './stream.mjs'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string' },
    trace: { type: 'string' },
    batches: { type: 'string', default: '1000' },
    'queue-batches': { type: 'string', default: '96' },
    load: { type: 'string', default: '1.25' },
    'batch-size': { type: 'string', default: '2048' },
    seed: { type: 'string', default: '1' },
  },
})
const [name] = positionals
if (positionals.length !== 1 || !Object.hasOwn(SETS, name) || options.out === undefined) {
  refuse(`name one of ${Object.keys(SETS).join(', ')}, and --out FOLDER`)
}
if (name === 'azure' && options.trace === undefined) refuse('azure needs --trace FILE')

const random = seeded(Number(options.seed))
const folder = options.out
mkdirSync(folder, { recursive: true })

const set = loadSet(name, { random, trace: options.trace })
const stream = repeated(set.lengths, Number(options.batches) * set.tokens, random)
const batchSize = Number(options['batch-size'])
for (const consumers of [1, 4]) {
  const trace = `${name}-${consumers}.csv`
  const { tokens } = set
  writeTrace(join(folder, trace), stream, { tokens, consumers, load: Number(options.load) })
  const config = { maxQueuedTokens: Number(options['queue-batches']) * tokens }
  const scenario = scenarioOf(set, { trace, consumers, batchSize, config })
  writeScenario(folder, `${name}-${consumers}.json`, scenario)
}
if (name === 'azure') {
  writeFileSync(join(folder, 'azure.csv'), readFileSync(options.trace))
  const scenario = scenarioOf(set, { trace: 'azure.csv', consumers: 1, batchSize, config: {} })
  writeScenario(folder, 'azure-as-is.json', scenario)
}
process.stdout.write(`${name}: ${set.about}\n${describe(set.lengths)}\n`)

function describe(lengths) {
  const sorted = [...lengths].sort((a, b) => a - b)
  const rank = (share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  const mean = sorted.reduce((sum, length) => sum + length, 0) / sorted.length
  return `${sorted.length} lengths, mean ${mean.toFixed(1)}, p10 ${rank(0.1)}, p50 ${rank(0.5)}, p90 ${rank(0.9)}, p99 ${rank(0.99)}, longest ${sorted.at(-1)}; ${stream.length} items streamed`
}

function refuse(why) {
  process.stderr.write(`workloads: ${why}\n`)
  process.exit(2)
}
