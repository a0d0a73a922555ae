// An error that the broker itself answered with, and whether it asks to come back.
import { type ErrorBody, type ErrorCode, FabricError } from '@fabric/protocol'

/** When a refusal for now does not say when to come back. */
const DEFAULT_WAIT_MS = 1000

/** Too much at once (429), draining or a failing disk (503), no room on the disk (507). */
const FOR_NOW = new Set([429, 503, 507])
/** Mended by a person, never by waiting. */
const FOR_GOOD = new Set<ErrorCode>(['FABRIC_JOB_LIMIT'])

export const isForNow = (status: number | undefined, code: ErrorCode): boolean =>
  status !== undefined && FOR_NOW.has(status) && !FOR_GOOD.has(code)

export class Answered extends FabricError {
  constructor(
    body: ErrorBody,
    readonly replyStatus: number,
    readonly retryAfterMs: number | null,
  ) {
    const { code, message, field } = FabricError.fromBody(body)
    super(code, message, { field })
  }
}

/** How long the broker asks to wait before the same is asked again; null: it would answer the same. */
export function waitAskedMs(error: unknown): number | null {
  if (!(error instanceof Answered) || !isForNow(error.replyStatus, error.code)) return null
  return error.retryAfterMs ?? DEFAULT_WAIT_MS
}
