// Streams as the table of the design's README measures them, as traces and scenarios of the
// simulator: the set shuffled and repeated until it fills so many batches, arriving a quarter faster
// than the consumers can take it, into a queue of a bounded number of batches.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What a batch costs a consumer of these scenarios. */
export const SERVICE = { fixedUs: 2000, perPaddedTokenNs: 500 }

export const serviceUs = (tokens) => SERVICE.fixedUs + (SERVICE.perPaddedTokenNs * tokens) / 1000

/** Shuffled anew each time, until it holds so many tokens. */
export function repeated(set, least, random) {
  const all = []
  let total = 0
  while (total < least) {
    for (const length of shuffled(set, random)) {
      all.push(length)
      total += length
      if (total >= least && all.length >= set.length) break
    }
  }
  return all
}

function shuffled(set, random) {
  const drawn = [...set]
  for (let i = drawn.length - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1))
    ;[drawn[i], drawn[other]] = [drawn[other], drawn[i]]
  }
  return drawn
}

/** A CSV of `stream`; load 1 is what the consumers take at best, Infinity has all items at time 0. */
export function writeTrace(file, stream, { tokens, consumers, load }) {
  const tokensPerUs = (load * consumers * tokens) / serviceUs(tokens)
  const lines = ['at_us,model,length']
  let arrived = 0
  for (const length of stream) {
    lines.push(`${Math.floor(arrived / tokensPerUs)},1,${length}`)
    arrived += length
  }
  writeFileSync(file, `${lines.join('\n')}\n`)
}

/** `trace` is looked for beside the scenario. */
export function scenarioOf({ tokens, inputLength }, { trace, consumers, batchSize, config }) {
  return {
    config,
    consumers: Array.from({ length: consumers }, (_, i) => ({
      name: `gpu${i}`,
      batchSize,
      tokens,
      inputLength,
      model: 1,
      service: SERVICE,
    })),
    events: [{ atUs: 0, trace, thenFlush: true }],
  }
}

export function writeScenario(folder, file, scenario) {
  writeFileSync(join(folder, file), `${JSON.stringify(scenario, null, 2)}\n`)
}
