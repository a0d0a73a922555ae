// A list of the scenario's items as the columns of a submission.
import type { SubmitBlock } from '@fabric/core'
import type { ItemData } from './scenario/schema.js'

export function blockOf(items: readonly ItemData[], job: number): SubmitBlock {
  const ids = items.map(({ id }) => Buffer.from(id))
  let end = 0
  return {
    job,
    count: items.length,
    model: Int32Array.from(items, ({ model }) => model),
    lengths: Int32Array.from(items, ({ length }) => length),
    tokens: new Int32Array(0),
    ids: Buffer.concat(ids),
    idEnds: Uint32Array.from(ids, (id) => {
      end += id.length
      return end
    }),
    payloads: null,
    payloadEnds: null,
    deadlineMs: items.some(({ deadlineMs }) => deadlineMs !== undefined)
      ? Int32Array.from(items, ({ deadlineMs }) => deadlineMs ?? 0)
      : null,
    maxWaitMs: items.some(({ maxWaitMs }) => maxWaitMs !== undefined)
      ? Int32Array.from(items, ({ maxWaitMs }) => maxWaitMs ?? 0)
      : null,
  }
}
