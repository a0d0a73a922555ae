// Why a connection ended of which the broker could not say why.
import type { ErrorBody } from '@fabric/protocol'

/**
 * A process that was stopped for longer than its lease (SIGSTOP, a suspended machine, a debugger) is
 * dead to the broker, whose parting error it may not get to read: whoever writes first finds the
 * socket closed.
 */
export function lossOf(message: string, silentMs: number, leaseTimeoutMs: number): ErrorBody {
  if (silentMs < leaseTimeoutMs) return { code: 'FABRIC_CONNECTION_LOST', message }
  const silent = Math.round(silentMs)
  return {
    code: 'FABRIC_LEASE_EXPIRED',
    message: `nothing was renewed for ${silent} ms, over the lease of ${leaseTimeoutMs} ms: this process did not run (${message})`,
  }
}
