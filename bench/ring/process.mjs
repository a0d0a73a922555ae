// One side of one contestant, in a process of its own: `process.mjs PEER ROLE ENDPOINT OPTIONS`.
// Ordered about by the comparison over Node's IPC; idle in between, it costs no CPU.

import { warmSource } from './source.mjs'

const [peerName, role, endpointText, optionsText] = process.argv.slice(2)
const peer = await import(`./peers/${peerName}.mjs`)
const endpoint = JSON.parse(endpointText)
const options = JSON.parse(optionsText)
const tell = (message) => process.send(message)

/** Warm-up pings, not counted: the compiler and the first page faults. */
const WARM_PINGS = 500

const roles = {
  async writer() {
    const writer = await peer.openWriter(endpoint, options)
    return {
      receive: ({ size, count }) => receive(writer, size, count),
      async send({ size, count }) {
        await writer.prepare?.(size)
        warmSource()
        const startNs = process.hrtime.bigint()
        await writer.send(size, count)
        tell({ type: 'sent', startNs: String(startNs) })
      },
    }
  },
  async reader() {
    const reader = await peer.openReader(endpoint, options)
    return { receive: ({ size, count }) => receive(reader, size, count) }
  },
  async ping() {
    let arrived
    const link = await peer.openLink('ping', endpoint, (...words) => arrived(words))
    return {
      async ping({ count }) {
        const [oneWayUs, roundTripUs] = [[], []]
        for (let i = -WARM_PINGS; i < count; i++) {
          const answer = new Promise((resolve) => (arrived = resolve))
          const startNs = process.hrtime.bigint()
          link.send(0n)
          const [, echo, receivedNs] = await answer
          if (i < 0) continue
          oneWayUs.push(Number(echo) / 1000)
          roundTripUs.push(Number(receivedNs - startNs) / 1000)
        }
        tell({ type: 'pinged', oneWayUs, roundTripUs })
      },
    }
  },
  async pong() {
    const link = await peer.openLink('pong', endpoint, (sentNs, _echo, receivedNs) =>
      link.send(receivedNs - sentNs),
    )
    return {}
  },
}

async function receive(reader, size, count) {
  const { endNs, sum } = await reader.receive(size, count, () => tell({ type: 'ready' }))
  tell({ type: 'received', endNs: String(endNs), sum })
}

process.on('disconnect', () => process.exit())
const orders = await roles[role]()
process.on('message', (message) => orders[message.type](message))
tell({ type: 'open' })
