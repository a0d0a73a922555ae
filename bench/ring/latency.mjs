// One way and round trip of 64 bytes between two sides, each asleep when its message comes (but for
// the spinning worker). The clock is the same for all processes of a host.
import { summary } from '../lib/stats.mjs'
import { inTurns } from '../lib/turns.mjs'
import { pingOnce } from './node-peer.mjs'

export const LOOP = 'ring, in the loop'
export const SPIN = 'ring, spinning worker'
export const UNIX = 'Unix socket'

/** @returns {Promise<Map<string, { oneWayUs: Summary, roundTripUs: Summary }[]>>} by round */
export async function latency({ folder, rounds, pings, say }) {
  const peers = [
    { name: LOOP, file: 'ring', endpoint: `${folder}/loop` },
    { name: SPIN, file: 'ring-spin', endpoint: `${folder}/spin` },
    { name: UNIX, file: 'sockets', endpoint: `${folder}/unix-ping` },
    { name: 'TCP loopback', file: 'sockets', endpoint: 39418 },
    { name: 'ZeroMQ ipc', file: 'zeromq', endpoint: `${folder}/zeromq-ping` },
    { name: 'MessageChannel', file: 'message-channel', endpoint: 'none' },
  ]
  const contestants = peers.map((peer) => ({
    key: peer.name,
    run: async () => {
      const { oneWayUs, roundTripUs } = await pingOnce(peer, pings)
      return { oneWayUs: summary(oneWayUs), roundTripUs: summary(roundTripUs) }
    },
  }))
  return inTurns(contestants, rounds, (line) => say(`latency, ${line}`))
}
