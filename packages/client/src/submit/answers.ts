// Reads what the broker said to one request: which items are in, which are refused for good, and
// which are to be sent again after a wait.
import { ERROR_KINDS, type ErrorBody, type ItemAnswer, type ItemsResponse } from '@fabric/protocol'
import { isForNow, waitAskedMs } from '../http/answered.js'
import { errorOf, type Reply } from '../http/transport.js'
import type { Entry } from './groups.js'
import type { SubmitItem } from './item.js'

export interface Refused<T extends SubmitItem> {
  readonly entry: Entry<T>
  readonly error: ErrorBody
}

export interface Verdict<T extends SubmitItem> {
  readonly accepted: number
  readonly duplicate: number
  readonly refused: readonly Refused<T>[]
  /** In their order; to be sent again after `waitMs`. */
  readonly again: readonly Entry<T>[]
  readonly waitMs: number
  /** Why they are to be sent again. */
  readonly because: ErrorBody | null
}

/** When answers that refuse for now do not say when to come back. */
const DEFAULT_WAIT_MS = 1000

const answersOf = (body: unknown): readonly ItemAnswer[] | null => {
  const { items } = (body ?? {}) as Partial<ItemsResponse>
  return Array.isArray(items) ? items : null
}

function verdictOf<T extends SubmitItem>(
  entries: readonly Entry<T>[],
  answers: readonly ItemAnswer[],
  reply: Reply,
): Verdict<T> {
  const refused: Refused<T>[] = []
  const again: Entry<T>[] = []
  const counts = { accepted: 0, duplicate: 0 }
  let because: ErrorBody | null = null
  entries.forEach((entry, i) => {
    const answer = answers[i]
    if (answer === undefined) again.push(entry)
    else if (answer.status !== 'refused') counts[answer.status] += 1
    else if (isForNow(ERROR_KINDS[answer.error.code]?.status, answer.error.code)) {
      again.push(entry)
      because ??= answer.error
    } else refused.push({ entry, error: answer.error })
  })
  if (again.length === entries.length && because === null) throw errorOf(reply)
  return { ...counts, refused, again, because, waitMs: reply.retryAfterMs ?? DEFAULT_WAIT_MS }
}

/** A refusal that speaks of the whole request though one item is at fault. */
const isAboutOneItem = (status: number) => status === 409 || status === 413 || status === 422

/**
 * @returns 'split' when the request is to be sent in halves to find the item at fault.
 * @throws FabricError when no item can be sent this way.
 */
export function readAnswer<T extends SubmitItem>(
  entries: readonly Entry<T>[],
  reply: Reply,
): Verdict<T> | 'split' {
  const answers = answersOf(reply.body)
  if (answers !== null) return verdictOf(entries, answers, reply)
  const none = { accepted: 0, duplicate: 0, refused: [], again: [], because: null, waitMs: 0 }
  const error = errorOf(reply)
  const { status } = reply
  const waitMs = waitAskedMs(error)
  if (waitMs !== null) return { ...none, again: entries, because: error.toBody(), waitMs }
  if (!isAboutOneItem(status)) throw error
  if (entries.length > 1) return 'split'
  return { ...none, refused: [{ entry: entries[0], error: error.toBody() }] }
}
