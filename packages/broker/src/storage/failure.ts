// What a thread answers when it could not do what it was asked for.
import { FabricError } from '@fabric/protocol'
import { diskFailure, hasRoom, isTreeDamage } from './disk-errors.js'
import { WHAT_TO_DO } from './environment.js'
import type { Failure } from './messages.js'

export function failureOf(error: unknown): Failure {
  if (error instanceof FabricError) return { code: error.code, message: error.message }
  const { code, message } = error as { code?: unknown; message: string }
  if (isTreeDamage(code))
    return {
      code: 'FABRIC_STORE_DAMAGED',
      message: `the data file is damaged (${message}): ${WHAT_TO_DO}`,
    }
  return { code: 'FABRIC_INTERNAL', message: (error as Error).stack ?? String(error) }
}

/** Of a start: what cannot be written then, on a disk with room, is a tree that lies about itself. */
export function startFailure(error: unknown, path: string): Failure {
  const isDamage = isTreeDamage((error as { code?: unknown }).code) && hasRoom(path)
  return (isDamage ? null : diskFailure(error, path)) ?? failureOf(error)
}
