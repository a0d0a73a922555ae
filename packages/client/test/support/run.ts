// `fabric run` with a broker, a consumer and files of its own.
import { join } from 'node:path'
import type { Handler } from '@fabric/consumer'
import { lengthAndSum, startConsumer, startRealBroker } from './real-broker.js'
import { jsonl, temporaryFolder, writeFile } from './texts.js'

export async function setUp({ flags = {}, handler = lengthAndSum as Handler | null } = {}) {
  const broker = await startRealBroker(flags)
  if (handler !== null) await startConsumer(broker, handler)
  const folder = temporaryFolder()
  const output = join(folder, 'out.jsonl')
  const run = (input: string, ...flags: string[]) =>
    ['run', input, '-o', output, '--model', '1', '--broker', broker.httpUrl, ...flags] as const
  const write = (records: readonly unknown[]) => writeFile(folder, 'in.jsonl', jsonl(records))
  return { broker, folder, output, run, write }
}

export const items = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ id: `i${i}`, tokens: Array(1 + (i % 40)).fill(i) }))

export const resultOf = ({ id, tokens }: { id: string; tokens: number[] }) => ({
  id,
  status: 'completed',
  result: [tokens.length, tokens.reduce((sum, token) => sum + token, 0)],
  attempts: 1,
})
