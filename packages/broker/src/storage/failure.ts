// What a thread answers when it could not do what it was asked for.
import { FabricError } from '@fabric/protocol'
import { isTreeDamage } from './disk-errors.js'
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
