// A real broker and a real consumer in the test's process, on a socket and a port of their own.
import { join } from 'node:path'
import { type RunningBroker, startBroker } from '@fabric/broker'
import { Consumer, type Handler } from '@fabric/consumer'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from './texts.js'

type Flags = Readonly<Record<string, unknown>>

/** To be stopped by the caller. */
export function openRealBroker(folder: string, flags: Flags = {}): Promise<RunningBroker> {
  const socket = join(folder, 'broker.sock')
  const fixed = { socket, http: '127.0.0.1:0', logLevel: 'silent', cleanupIdleMs: 0 }
  return startBroker({ flags: { ...fixed, ...flags } })
}

export async function startRealBroker(flags: Flags = {}): Promise<RunningBroker> {
  const broker = await openRealBroker(temporaryFolder(), flags)
  onTestFinished(() => broker.stop())
  return broker
}

/** Item by item: its length and the sum of its token ids, which say what was run and in what order. */
export const lengthAndSum: Handler = async (batch) => {
  const rows: Float32Array[] = []
  for (let i = 0; i < batch.size; i++) {
    const length = batch.lengths[i]
    const start = batch.offsets?.[i] ?? i * batch.paddedLength
    let sum = 0
    for (let k = 0; k < length; k++) sum += batch.inputIds[start + k]
    rows.push(Float32Array.of(length, sum))
  }
  return rows
}

export async function startConsumer(
  broker: Pick<RunningBroker, 'socketPath'>,
  handler: Handler = lengthAndSum,
): Promise<void> {
  const contract = { batchSize: 8, tokens: 1024, inputLength: 512, model: 1 }
  const consumer = new Consumer({ broker: `unix:${broker.socketPath}`, ...contract })
  const stop = new AbortController()
  const running = consumer.run(handler, { signal: stop.signal })
  onTestFinished(async () => {
    stop.abort()
    await running.catch(() => {})
  })
}
