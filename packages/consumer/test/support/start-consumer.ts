// A consumer and the stub of a broker that it is told to connect to; both end with the test.
import { Consumer, type ConsumerOptions } from '@fabric/consumer'
import { onTestFinished } from 'vitest'
import { StubBroker, type StubOptions } from './stub-broker.js'

export async function start(stub: StubOptions = {}, options: Partial<ConsumerOptions> = {}) {
  const broker = await StubBroker.start(stub)
  const consumer = new Consumer({
    broker: broker.address,
    batchSize: 8,
    tokens: 1024,
    inputLength: 64,
    model: 1,
    ...options,
  })
  onTestFinished(async () => {
    await consumer.drain()
    await broker.dispose()
  })
  return { broker, consumer }
}
