// One way and round trip of 64 bytes between two sides, each asleep when its message comes (but for
// the spinning worker). The clock is the same for all processes of a host. The cores are given: the
// scheduler's choice between one core and two would decide more than any contestant does.
import { summary } from '../lib/stats.mjs'
import { inTurns } from '../lib/turns.mjs'
import { LOOP_EACH, LOOP_ONE, PIPE_EACH, SPIN_EACH, UNIX_EACH, UNIX_ONE } from './names.mjs'
import { nativePing } from './native-bench.mjs'
import { pingOnce } from './node-peer.mjs'

const ONE = [0, 0]
const EACH = [0, 1]

/** @returns {Promise<Map<string, { oneWayUs: Summary, roundTripUs: Summary }[]>>} by round */
export async function latency({ folder, rounds, pings, say }) {
  const peers = [
    { name: LOOP_ONE, file: 'ring', endpoint: `${folder}/loop`, cores: ONE },
    { name: UNIX_ONE, file: 'sockets', endpoint: `${folder}/unix`, cores: ONE },
    { name: 'TCP loopback, one core', file: 'sockets', endpoint: 39418, cores: ONE },
    { name: 'C++, bare pipe, one core', cores: ONE },
    { name: SPIN_EACH, file: 'ring-spin', endpoint: `${folder}/spin`, cores: EACH },
    { name: LOOP_EACH, file: 'ring', endpoint: `${folder}/loop-each`, cores: EACH },
    { name: UNIX_EACH, file: 'sockets', endpoint: `${folder}/unix-each`, cores: EACH },
    { name: 'TCP loopback, a core each', file: 'sockets', endpoint: 39419, cores: EACH },
    { name: PIPE_EACH, cores: EACH },
    { name: 'ZeroMQ ipc', file: 'zeromq', endpoint: `${folder}/zeromq-ping` },
    { name: 'MessageChannel', file: 'message-channel', endpoint: 'none' },
  ]
  const contestants = peers.map((peer) => ({
    key: peer.name,
    run: async () => {
      const { oneWayUs, roundTripUs } =
        peer.file === undefined ? await nativePing(peer.cores, pings) : await pingOnce(peer, pings)
      return { oneWayUs: summary(oneWayUs), roundTripUs: summary(roundTripUs) }
    },
  }))
  return inTurns(contestants, rounds, (line) => say(`latency, ${line}`))
}
