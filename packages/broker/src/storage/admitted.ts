// Accepted items on their way to the index.
import type { EncodedAppend } from './item-append.js'

/** Items whose ids have been looked up, ready for the log. */
export interface Admitted {
  readonly codes: Uint8Array
  readonly entries: Uint32Array
  readonly encoded: EncodedAppend
}

/** One that is in the log and not in the index yet. */
export interface Logged extends Pick<Admitted, 'entries'> {
  readonly encoded: Pick<EncodedAppend, 'job' | 'accepted' | 'last' | 'blocks'>
  /** Of its begin. */
  readonly segment: number
  readonly offset: number
}
