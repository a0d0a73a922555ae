import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { attach, createWriter, put, serve, temporaryFolder } from './harness.js'

const children = new URL('children/', import.meta.url)

describe('worker threads', () => {
  it('reads a ring in a worker, and survives its end with everything open', async () => {
    for (let round = 0; round < 30; round++) {
      const writer = createWriter()
      const worker = new Worker(new URL('worker-reader.mjs', children), {
        workerData: await serve(writer),
      })
      expect((await once(worker, 'message'))[0]).toBe('ready')
      put(writer, 5, 1000, 1)
      expect((await once(worker, 'message'))[0]).toEqual({ sequence: 5, length: 1000 })
      await worker.terminate()
    }
  })

  it('aborts a claim that is open when its worker ends', async () => {
    for (const how of ['exit', 'terminate']) {
      const path = join(temporaryFolder(), 'broker.sock')
      const worker = new Worker(new URL('worker-writer.mjs', children), { workerData: path })
      await once(worker, 'message')
      const reader = await attach(path)
      expect(reader.next()).toBe(null)
      const exit = once(worker, 'exit')
      if (how === 'exit') worker.postMessage('exit')
      else await worker.terminate()
      await exit
      // It had claimed record 1, then committed record 2 behind it.
      expect(reader.next()?.batchSequence).toBe(2)
    }
  })

  it('ends a worker whose handshake is still under way', async () => {
    const writer = createWriter()
    await serve(writer)
    const worker = new Worker(
      `const { workerData, parentPort } = require('node:worker_threads')
       import(workerData.url).then(({ connectUnix }) => {
         connectUnix({ path: '/nowhere', hello: new Uint8Array(1), timeoutMs: 100 }).catch(() => {})
         parentPort.postMessage('under way')
       })`,
      { eval: true, workerData: { url: new URL('../dist/index.js', import.meta.url).href } },
    )
    await once(worker, 'message')
    await worker.terminate()
  })
})
