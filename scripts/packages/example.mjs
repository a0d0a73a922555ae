// The ten lines: a broker, a consumer and a job. check.mjs runs them from installed packages.
import { startBroker } from '@fabric/broker'
import { FabricClient } from '@fabric/client'
import { Consumer } from '@fabric/consumer'

const broker = await startBroker({ flags: { socket: process.argv[2], http: '127.0.0.1:0' } })
const contract = { batchSize: 8, tokens: 512, inputLength: 64, model: 1 }
const consumer = new Consumer({ broker: `unix:${broker.socketPath}`, ...contract })
const running = consumer.run((batch) => Array.from(batch.lengths, (tokens) => ({ tokens })))

const job = await new FabricClient({ broker: broker.httpUrl }).createJob({ model: 1 })
await job.submit(Array.from({ length: 100 }, (_, i) => ({ id: `item-${i}`, tokens: [i, i, i] })))
const results = []
for await (const result of job.results()) results.push(result)

const { transport, transportReason } = consumer.status
process.stdout.write(`${JSON.stringify({ results, transport, transportReason })}\n`)
await consumer.drain()
await running
await broker.stop()
