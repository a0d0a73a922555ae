// What the writer's process makes of a consumer that lies and makes noise.
import { writeSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { codeOf, createWriter, turn } from './harness.js'

describe('ring: a hostile consumer', () => {
  it('poisons the ring by an impossible read position, and the waiting writer learns of it', async () => {
    const writer = createWriter()
    const rctl = writer.descriptors()[2]!
    while (writer.claim(500_000)) {
      // claimed and never committed: nothing may be freed
    }
    const told = new Promise<void>((resolve) => writer.onSpace(resolve))
    const lie = Buffer.alloc(8)
    lie.writeBigUInt64LE(64n)
    writeSync(rctl, lie, 0, 8, 0)
    writeSync(writer.descriptors()[4]!, 'x')
    await told
    expect(codeOf(() => writer.claim(500_000))).toBe('RING_POISONED')
    expect(writer.stat().poisoned).toBe(true)
  })

  it('is no longer listened to after 1,000 wake-ups for nothing, and space is still found', async () => {
    const noisy = createWriter()
    const noise = noisy.descriptors()[4]!
    const rctl = noisy.descriptors()[2]!
    let sequence = 0
    for (let claim = noisy.claim(500_000); claim; claim = noisy.claim(500_000)) {
      claim.commit(sequence++)
    }
    let called = false
    noisy.onSpace(() => {
      called = true
    })
    for (let wake = 0; wake < 1_100; wake++) {
      writeSync(noise, 'x')
      await turn()
    }
    expect(called).toBe(false)
    const position = Buffer.alloc(8)
    position.writeBigUInt64LE(500_096n)
    writeSync(rctl, position, 0, 8, 0)
    await expect.poll(() => called).toBe(true)
    expect(noisy.claim(300_000)).not.toBe(null)
  })
})
