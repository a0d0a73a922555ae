// `fabric run` with a broker, a consumer and files of its own.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Handler } from '@fabric/consumer'
import { vi } from 'vitest'
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

/** A consumer that stops after `count` items until it is let go. */
export function gated(count: number, handle: Handler = lengthAndSum) {
  let done = 0
  let release = () => {}
  let stuck = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const isStuck = new Promise<void>((resolve) => {
    stuck = resolve
  })
  const handler: Handler = async (batch, ...rest) => {
    if (done >= count) {
      stuck()
      await released
    }
    done += batch.size
    return handle(batch, ...rest)
  }
  return { handler, release: () => release(), isStuck }
}

/** Resolves when a file holds something. */
export const written = (path: string, bytes = 1): Promise<void> =>
  vi.waitFor(
    () => {
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < bytes) throw new Error(path)
    },
    { timeout: 20_000, interval: 10 },
  )
