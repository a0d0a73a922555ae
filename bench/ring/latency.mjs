// One way and round trip of 64 bytes between two sides, each asleep when its message comes (but for
// the spinning worker). The clock is the same for all processes of a host. A spinning worker needs a
// core to itself, so it is compared with sides that have one each.
import { summary } from '../lib/stats.mjs'
import { inTurns } from '../lib/turns.mjs'
import { LOOP, SPIN, UNIX, UNIX_PINNED } from './names.mjs'
import { pingOnce } from './node-peer.mjs'

/** @returns {Promise<Map<string, { oneWayUs: Summary, roundTripUs: Summary }[]>>} by round */
export async function latency({ folder, rounds, pings, say }) {
  const peers = [
    { name: LOOP, file: 'ring', endpoint: `${folder}/loop` },
    { name: UNIX, file: 'sockets', endpoint: `${folder}/unix-ping` },
    { name: 'TCP loopback', file: 'sockets', endpoint: 39418 },
    { name: 'ZeroMQ ipc', file: 'zeromq', endpoint: `${folder}/zeromq-ping` },
    { name: 'MessageChannel', file: 'message-channel', endpoint: 'none' },
    { name: SPIN, file: 'ring-spin', endpoint: `${folder}/spin`, pinned: true },
    { name: UNIX_PINNED, file: 'sockets', endpoint: `${folder}/unix-pinned`, pinned: true },
    {
      name: 'ring, in the loop, a core each',
      file: 'ring',
      endpoint: `${folder}/loop-pinned`,
      pinned: true,
    },
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
