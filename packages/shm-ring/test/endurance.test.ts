// What breaks only after many rounds. A few of them here; FABRIC_ROUNDS asks for more.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { attach, createWriter, pair, put, serve, temporaryFolder } from './harness.js'

const ROUNDS = Number(process.env.FABRIC_ROUNDS ?? 5)
const children = new URL('children/', import.meta.url)
const many = { timeout: 30_000 + ROUNDS * 5_000 }

describe('endurance', () => {
  it('a worker may be terminated in the middle of a claim and of a hold', many, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const writer = createWriter()
      const path = await serve(writer)
      const holding = new Worker(new URL('worker-reader.mjs', children), { workerData: path })
      await once(holding, 'message')
      put(writer, round, 1000, 1)
      await once(holding, 'message')

      const socket = join(temporaryFolder(), 'broker.sock')
      const claiming = new Worker(new URL('worker-writer.mjs', children), { workerData: socket })
      await once(claiming, 'message')
      const reader = await attach(socket)
      await Promise.all([holding.terminate(), claiming.terminate()])
      expect(reader.next()?.batchSequence).toBe(2)
      reader.close()
      writer.close()
    }
  })

  it('one address backs many buffers one after another, through collections', many, async () => {
    const { writer, reader } = await pair()
    const batches = ROUNDS * 1_000
    for (let sequence = 0; sequence < batches; sequence++) {
      put(writer, sequence, 4096, sequence & 255)
      const record = reader.next()
      const view = new Uint8Array(record!.payload)
      if (view[0] !== (sequence & 255) || view[4095] !== view[0]) expect.fail(`batch ${sequence}`)
      record!.release()
      expect(view.length).toBe(0)
    }
    expect(writer.stat().usedBytes).toBe(0)
  })

  it('as many records as fit are held and released from the last to the first', async () => {
    const { writer, reader } = await pair()
    let count = 0
    for (let claim = writer.claim(65_000); claim !== null; claim = writer.claim(65_000))
      claim.commit(count++)
    const held = Array.from({ length: count }, () => reader.next()!)
    expect(held.map(({ batchSequence }) => batchSequence)).toEqual([...held.keys()])
    for (const record of held.reverse()) record.release()
    expect(reader.held).toBe(0)
    expect(writer.stat().usedBytes).toBe(0)
  })

  it('a program that is started from here gets no descriptor of a ring', async () => {
    await pair()
    const { stdout } = spawnSync('ls', ['-l', '/proc/self/fd'], { encoding: 'utf8' })
    expect(stdout).toContain('->')
    expect(stdout).not.toMatch(/memfd|fabric/)
  })

  it('two rings of one process never have one name, though their process ids are equal', () => {
    const ids = Array.from({ length: 8 }, () => createWriter().id)
    expect(new Set(ids).size).toBe(8)
  })
})
