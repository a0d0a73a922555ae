// Closing at awkward moments.
import { describe, expect, it } from 'vitest'
import { codeOf, pair, turn } from './harness.js'

describe('ring: closing', () => {
  it('may be closed from within its own callback', async () => {
    const { writer, reader } = await pair()
    while (true) {
      const claim = writer.claim(500_000)
      if (!claim) break
      claim.commit(1)
    }
    const space = new Promise<void>((resolve) => {
      writer.onSpace(() => {
        writer.close()
        resolve()
      })
    })
    const readable = new Promise<void>((resolve) => {
      reader.onReadable(() => {
        reader.next()!.release()
        reader.close()
        resolve()
      })
    })
    await Promise.all([space, readable])
    expect(codeOf(() => writer.stat())).toBe('RING_CLOSED')
    expect(codeOf(() => reader.next())).toBe('RING_CLOSED')
  })

  it('calls nobody back after close', async () => {
    const { writer, reader } = await pair()
    let calls = 0
    reader.onReadable(() => calls++)
    reader.close()
    writer.onSpace(() => calls++)
    writer.close()
    await turn()
    await turn()
    expect(calls).toBe(0)
  })
})
