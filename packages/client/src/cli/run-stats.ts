// What a run counts. The progress display and the summary read it; only the run writes it.
import type { Ended } from '../output/kept.js'
import type { SubmitSummary } from '../submit/submitter.js'

export class RunStats {
  /** Lines of the input; null until they are counted, and for standard input. */
  total: number | null = null
  badLines = 0
  completed = 0
  /** Ended otherwise than completed, by status. */
  readonly ended: Record<string, number> = {}
  truncated = 0
  submit: Omit<SubmitSummary, 'refusals'> = {
    items: 0,
    accepted: 0,
    duplicate: 0,
    refused: 0,
    tokens: 0,
    requests: 0,
    retries: 0,
    waitedMs: 0,
  }
  /** Why the broker takes nothing at the moment. */
  waitingFor: string | null = null
  /** Since when the broker does not answer, on performance.now(); null while it does. */
  silentSinceMs: number | null = null

  settle({ status, truncatedTo }: Ended): void {
    if (truncatedTo !== undefined) this.truncated += 1
    if (status === 'completed') this.completed += 1
    else this.ended[status] = (this.ended[status] ?? 0) + 1
  }

  get settled(): number {
    return this.completed + Object.values(this.ended).reduce((sum, n) => sum + n, 0)
  }

  /** Lines that did not end as completed items. */
  get failed(): number {
    return this.settled - this.completed + this.submit.refused + this.badLines
  }

  get done(): number {
    return this.completed + this.failed
  }

  /** Of settled items. A result does not say its tokens: until the end an estimate by the mean. */
  get doneTokens(): number {
    const known = this.submit.accepted + this.submit.duplicate
    return known === 0 ? 0 : this.submit.tokens * Math.min(1, this.settled / known)
  }
}
