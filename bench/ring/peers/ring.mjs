// Ours: records are gathered into the ring by the native call that the broker uses, and read in place.
import { gatherRows, RingWriter } from '@fabric/shm-ring'
import { attachRing, offerRing } from '../../lib/ring-handshake.mjs'
import { RING_BYTES } from '../sizes.mjs'
import { recordAt, source, Tally } from '../source.mjs'

/** @param {'huge' | 'transparent' | 'base'} pages */
function createRing(pages) {
  if (pages === 'transparent') return withoutHugePages(() => create('try', pages))
  return create(pages === 'huge' ? 'require' : 'off', pages)
}

function create(hugePages, pages) {
  const writer = RingWriter.create({ capacityBytes: RING_BYTES, hugePages })
  if (writer.pages !== pages) throw new Error(`no ${pages} pages: ${writer.pagesReason}`)
  return writer
}

/** A ring gets transparent pages only where the pool is empty, so it is emptied for a moment. */
function withoutHugePages(work) {
  const fillers = []
  try {
    for (;;) fillers.push(RingWriter.create({ capacityBytes: RING_BYTES, hugePages: 'require' }))
  } catch {
    // No more pages for a ring of this size.
  }
  const ring = work()
  for (const filler of fillers) filler.close()
  return ring
}

export async function openWriter(endpoint, { pages }) {
  const writer = createRing(pages)
  const sources = [source().buffer]
  const [index, offset, length] = [new Uint32Array(1), new Uint32Array(1), new Uint32Array(1)]
  await offerRing(endpoint, writer)
  return {
    send: (size, count) =>
      new Promise((resolve) => {
        let sent = 0
        length[0] = size
        const pump = () => {
          while (sent < count) {
            const claim = writer.claim(size)
            if (claim === null) return writer.onSpace(pump)
            offset[0] = recordAt(sent, size)
            gatherRows(writer.memory, claim.byteOffset, 0, 1, sources, index, offset, length)
            claim.commit(sent++)
          }
          resolve()
        }
        pump()
      }),
  }
}

export async function openReader(endpoint) {
  const reader = await attachRing(endpoint)
  let tally
  reader.onReadable(() => {
    for (let record = reader.next(); record !== null; record = reader.next()) {
      tally.add(record.payload)
      record.release()
    }
  })
  return {
    receive: (_size, count, ready) =>
      new Promise((resolve) => {
        tally = new Tally(count, resolve)
        ready()
      }),
  }
}

/** One ring there, one back. @returns the reader, and send() for [time, echo]. */
export async function openRingPair(side, endpoint) {
  const writer = RingWriter.create({ capacityBytes: 4 * 1024 * 1024 })
  const [mine, theirs] = side === 'ping' ? ['there', 'back'] : ['back', 'there']
  const { taken } = await offerRing(`${endpoint}.${mine}`, writer)
  const reader = await attachWhenThere(`${endpoint}.${theirs}`)
  await taken // a spinning thread could not hand it over later
  let sequence = 0
  const send = (echo) => {
    const claim = writer.claim(64)
    const words = new BigUint64Array(writer.memory, claim.byteOffset, 2)
    words[1] = echo
    words[0] = process.hrtime.bigint()
    claim.commit(++sequence)
  }
  return { reader, send }
}

async function attachWhenThere(path) {
  for (;;) {
    try {
      return await attachRing(path)
    } catch (error) {
      if (error.code !== 'RING_CONNECT_FAILED') throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export async function openLink(side, endpoint, onMessage) {
  const { reader, send } = await openRingPair(side, endpoint)
  reader.onReadable(() => {
    for (let record = reader.next(); record !== null; record = reader.next()) {
      const receivedNs = process.hrtime.bigint()
      const [sentNs, echo] = new BigUint64Array(record.payload, 0, 2)
      record.release()
      onMessage(sentNs, echo, receivedNs)
    }
  })
  return { send }
}
