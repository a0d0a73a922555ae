// `fabric-broker ring stat`: the rings of a running broker. It looks and changes nothing; the numbers
// come from GET /v1/state (consumers[].ring), docs/shm-layout.md says what they mean.
import type { BrokerState, ConsumerState } from '../state.js'
import { fetchState, inBytes, table } from './ask.js'

export async function ringStat(flags: { broker: string; json?: boolean }): Promise<void> {
  const state = await fetchState(flags.broker)
  process.stdout.write(
    flags.json === true ? `${JSON.stringify(ringsOf(state), null, 2)}\n` : renderRings(state),
  )
}

/** The rings with their peers; a consumer without a ring is not in it. */
function ringsOf({ consumers }: BrokerState) {
  return consumers.flatMap(({ name, pid, uid, ring, viaSocket }) =>
    ring === null ? [] : [{ peer: { name, pid, uid }, viaSocket, ...ring }],
  )
}

export function renderRings(state: BrokerState): string {
  const lines = [
    `rings  ${inBytes(state.rings.usedBytes)} of ${inBytes(state.rings.maxBytes)} (ringBytesMax)`,
  ]
  for (const { peer, ...ring } of ringsOf(state)) {
    const { positions } = ring
    lines.push(
      '',
      `${peer.name}  pid ${peer.pid}, uid ${peer.uid}, ring ${ring.id}${ring.poisoned ? ', POISONED' : ''}`,
      ...table([
        [
          '  memory',
          `${inBytes(ring.capacityBytes)}, ${inBytes(ring.pageSizeBytes)} pages (${ring.pagesReason})`,
        ],
        [
          '  used',
          `${ring.usedBytes} bytes, ${((100 * ring.usedBytes) / ring.capacityBytes).toFixed(1)} %`,
        ],
        ['  claimed', positions.claimed],
        ['  committed', positions.committed],
        ['  taken', positions.taken],
        ['  read', positions.read],
        [
          '  claims',
          `${ring.claims}, ${ring.claimRetries} retries, ${ring.fulls} full, ${ring.aborts} aborted, ${ring.viaSocket} by socket`,
        ],
        ['  gaps', `${ring.pads}, ${ring.tailGapBytes} bytes`],
        ['  wake-ups', String(ring.wakeups)],
      ]),
    )
  }
  lines.push(...withoutRing(state.consumers))
  return `${lines.join('\n')}\n`
}

function withoutRing(consumers: readonly ConsumerState[]): string[] {
  if (consumers.length === 0) return ['', 'no consumer is connected']
  return consumers.flatMap(({ name, pid, uid, ring, transportReason }) =>
    ring === null ? ['', `${name}  pid ${pid}, uid ${uid}, no ring: ${transportReason}`] : [],
  )
}
