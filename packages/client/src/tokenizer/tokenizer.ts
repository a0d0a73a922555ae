// What a tokenizer is to the rest of the package, and the buffer it writes into. Ids of many texts
// stand one after another in one Int32Array, so that a batch crosses a thread without a copy.

export interface Tokenizer {
  /** Which implementation serves this tokenizer.json: shown in logs, asserted by tests. */
  readonly kind: 'wordpiece' | 'huggingface'
  /** Appends the ids of `text`, special tokens included, and returns how many they are. */
  encode(text: string, out: IdBuffer): number
}

/** A growing run of ids: `ids[0..length)` is valid; `reserve` may replace `ids`. */
export class IdBuffer {
  ids: Int32Array
  length = 0

  constructor(capacity = 4096) {
    this.ids = new Int32Array(capacity)
  }

  /** Makes room for `count` more ids, so that a caller may write `ids` directly. */
  reserve(count: number): void {
    const needed = this.length + count
    if (needed <= this.ids.length) return
    const grown = new Int32Array(Math.max(needed, this.ids.length * 2))
    grown.set(this.ids.subarray(0, this.length))
    this.ids = grown
  }

  append(ids: readonly number[]): void {
    this.reserve(ids.length)
    for (let i = 0; i < ids.length; i++) this.ids[this.length + i] = ids[i]
    this.length += ids.length
  }

  /**
   * Cuts the run that began at `start` to `maxLength` ids and ends it with `suffix` ([SEP]): a model
   * trained with a closing token reads a text without one as unfinished.
   */
  truncate(start: number, maxLength: number, suffix: readonly number[]): number {
    const count = this.length - start
    if (count <= maxLength) return count
    const kept = Math.min(suffix.length, maxLength)
    for (let i = 0; i < kept; i++) {
      this.ids[start + maxLength - kept + i] = suffix[suffix.length - kept + i]
    }
    this.length = start + maxLength
    return maxLength
  }
}
