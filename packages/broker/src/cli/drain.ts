// `fabric-broker consumers drain NAME`: lets a consumer finish what it has taken, and leave.
import { type ErrorBody, FabricError } from '@fabric/protocol'

export async function drainConsumer(name: string, flags: { broker: string }): Promise<void> {
  const url = new URL(`/v1/consumers/${encodeURIComponent(name)}/drain`, flags.broker)
  const response = await fetch(url, { method: 'POST' }).catch((cause) => {
    throw new FabricError('FABRIC_BROKER_UNREACHABLE', `no broker answers at ${flags.broker}`, {
      cause,
    })
  })
  if (!response.ok) {
    const { error } = (await response.json()) as { error: ErrorBody }
    throw FabricError.fromBody(error)
  }
  process.stdout.write(`${name} is draining\n`)
}
