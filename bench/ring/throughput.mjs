// Bytes per second through every contestant, in turns, for each size of record.
import { inTurns } from '../lib/turns.mjs'
import { MEMCPY, RING, UNIX, ZEROMQ } from './names.mjs'
import { nativeThroughput } from './native-bench.mjs'
import { openThroughput } from './node-peer.mjs'
import { burstBytes, RECORD_BYTES } from './sizes.mjs'

const memcpy = (name, contestant) => ({ name, native: { contestant, pages: 'huge' } })

/** @param {string} folder for sockets @param {'huge' | 'transparent' | 'base'} pages of `ring` */
function nodeContestants(folder, pages) {
  let made = 0
  const ring = (name, kind) => ({
    name,
    file: 'ring',
    endpoint: `${folder}/ring-${made++}`,
    options: { pages: kind },
    cores: [0, 1],
  })
  return [
    memcpy('memcpy, not read', 'copy'),
    memcpy('memcpy, read back', 'copyread'),
    memcpy(MEMCPY, 'bare'),
    ring(RING, pages),
    { ...ring('ring, cores by the scheduler', pages), cores: undefined },
    ring('ring, transparent pages', 'transparent'),
    ring('ring, 4 KiB pages', 'base'),
    { name: UNIX, file: 'sockets', endpoint: `${folder}/unix` },
    { name: 'TCP loopback', file: 'sockets', endpoint: 39417 },
    { name: ZEROMQ, file: 'zeromq', endpoint: `${folder}/zeromq` },
    { name: 'MessageChannel, transfer', file: 'message-channel', endpoint: 'none' },
  ]
}

/**
 * @returns {Promise<Map<string, Map<number, number[]>>>} GB/s by contestant, size and round
 */
export async function nodeThroughput({ folder, pages, rounds, quick, say }) {
  const entries = []
  const open = []
  for (const contestant of nodeContestants(folder, pages)) {
    if (contestant.native !== undefined) {
      const job = { ...contestant.native, pages }
      entries.push({
        name: contestant.name,
        burst: (size, count) => burstNatively(job, size, count),
      })
      continue
    }
    const peer = await openThroughput(contestant)
    open.push(peer)
    entries.push({ name: contestant.name, burst: peer.burst })
  }
  const results = await runAll(entries, rounds, quick, say)
  for (const peer of open) peer.close()
  return results
}

/** The C++ ring alone: kinds of pages, one writer and three. */
export async function nativeRing({ rounds, quick, say }) {
  const entries = []
  for (const pages of ['huge', 'transparent', 'base']) {
    for (const [what, job] of [
      [MEMCPY, { contestant: 'bare' }],
      ['ring, 1 writer', { contestant: 'ring' }],
      ['ring, 3 writers', { contestant: 'ring', writers: 3 }],
    ]) {
      const burst = (size, count) => burstNatively({ ...job, pages }, size, count)
      entries.push({ name: `${what}, ${pages}`, burst })
    }
  }
  return runAll(entries, rounds, quick, say)
}

const burstNatively = (job, size, count) =>
  nativeThroughput({ ...job, recordBytes: size, totalBytes: size * count })

async function runAll(entries, rounds, quick, say) {
  const results = new Map(entries.map(({ name }) => [name, new Map()]))
  for (const size of RECORD_BYTES) {
    const count = Math.ceil(burstBytes(size, quick) / size)
    const contestants = entries.map(({ name, burst }) => ({
      key: name,
      run: () => burst(size, count),
    }))
    // One burst each that does not count: the compiler, the first lap's page faults.
    await inTurns(contestants, 1, () => {})
    const found = await inTurns(contestants, rounds, (line) => say(`${size} bytes, ${line}`))
    for (const [name, values] of found) results.get(name).set(size, values)
  }
  return results
}
