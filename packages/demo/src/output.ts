// The output of `fabric run`, held against its input.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Text } from './corpus.js'
import type { ResultCounts } from './promises.js'
import type { Sample } from './verify.js'

/** Reads the output once: counts it, and picks `wanted` of its vectors, evenly spread. */
export async function readResults(
  path: string,
  texts: readonly Text[],
  wanted: number,
): Promise<{ counts: ResultCounts; samples: Sample[] }> {
  const ids = new Set<string>()
  const samples: Sample[] = []
  const every = Math.floor(texts.length / wanted)
  let [lines, completed, inInputOrder] = [0, 0, true]
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const { id, status, result } = JSON.parse(line) as {
      id: string
      status: string
      result: number[]
    }
    if (lines % every === 0 && texts[lines]?.id === id)
      samples.push({ ...texts[lines], vector: result })
    if (texts[lines]?.id !== id) inInputOrder = false
    ids.add(id)
    lines += 1
    if (status === 'completed') completed += 1
  }
  return { counts: { lines, distinctIds: ids.size, completed, inInputOrder }, samples }
}
