// Items on their way to the core as flat columns: one set of growing buffers, used anew for each
// block (the core copies what it keeps), so that no item is an object with an array of its own.

import type { SubmitBlock } from '@fabric/core'
import { ID_BYTES_MAX } from '@fabric/protocol'

const encoder = new TextEncoder()
const KEPT_BYTES_MAX = 16 * 1024 * 1024

export class ItemColumns {
  #count = 0
  #model = new Int32Array(64)
  #lengths = new Int32Array(64)
  #idEnds = new Uint32Array(64)
  #payloadEnds = new Uint32Array(64)
  #tokens = new Int32Array(4096)
  #tokensUsed = 0
  #ids = new Uint8Array(4096)
  #idsUsed = 0
  #payloads = new Uint8Array(0)
  #payloadsUsed = 0
  #anyPayload = false
  #deadlines = new Int32Array(64)
  #anyDeadline = false
  /** Of the next item, ms; 0 = none. */
  deadlineMs = 0
  #waits = new Int32Array(64)
  #anyWait = false
  /** How long the next item may be held back, ms; 0 = as its job (S16). */
  maxWaitMs = 0

  get count(): number {
    return this.#count
  }

  /** Bytes of tokens and payloads in the block so far. */
  get bytes(): number {
    return 4 * this.#tokensUsed + this.#payloadsUsed
  }

  clear(): void {
    this.#count = 0
    this.#tokensUsed = 0
    this.#idsUsed = 0
    this.#payloadsUsed = 0
    this.#anyPayload = false
    this.#anyDeadline = false
    this.deadlineMs = 0
    this.#anyWait = false
    this.maxWaitMs = 0
    // One monstrous line must not leave its buffer behind.
    if (this.#tokens.byteLength > KEPT_BYTES_MAX) this.#tokens = new Int32Array(4096)
    if (this.#payloads.byteLength > KEPT_BYTES_MAX) this.#payloads = new Uint8Array(0)
  }

  /** Room for `count` tokens from `tokensAt` on; they count once `pushTokens` says how many. */
  reserveTokens(count: number): Int32Array {
    if (this.#tokensUsed + count > this.#tokens.length)
      this.#tokens = grown(this.#tokens, this.#tokensUsed + count)
    return this.#tokens
  }

  /** Where the next item's tokens start in what `reserveTokens` returned. */
  get tokensAt(): number {
    return this.#tokensUsed
  }

  /** Ends an item whose `length` tokens were written behind `tokensAt`. */
  pushTokens(id: string, model: number, length: number): void {
    this.#tokensUsed += length
    this.#push(id, model, length)
  }

  pushPayload(id: string, model: number, length: number, payload: Uint8Array): void {
    if (this.#payloadsUsed + payload.byteLength > this.#payloads.length)
      this.#payloads = grown(this.#payloads, this.#payloadsUsed + payload.byteLength)
    this.#payloads.set(payload, this.#payloadsUsed)
    this.#payloadsUsed += payload.byteLength
    this.#anyPayload = true
    this.#push(id, model, length)
  }

  /** The block; its columns are borrowed and end with the next `clear`. */
  block(job: number): SubmitBlock {
    const count = this.#count
    return {
      job,
      count,
      model: this.#model.subarray(0, count),
      lengths: this.#lengths.subarray(0, count),
      tokens: this.#tokens.subarray(0, this.#tokensUsed),
      ids: this.#ids.subarray(0, this.#idsUsed),
      idEnds: this.#idEnds.subarray(0, count),
      deadlineMs: this.#anyDeadline ? this.#deadlines.subarray(0, count) : null,
      maxWaitMs: this.#anyWait ? this.#waits.subarray(0, count) : null,
      payloads: this.#anyPayload ? this.#payloads.subarray(0, this.#payloadsUsed) : null,
      payloadEnds: this.#anyPayload ? this.#payloadEnds.subarray(0, count) : null,
    }
  }

  #push(id: string, model: number, length: number): void {
    const at = this.#count
    if (at === this.#model.length) {
      this.#model = grown(this.#model, at + 1)
      this.#lengths = grown(this.#lengths, at + 1)
      this.#deadlines = grown(this.#deadlines, at + 1)
      this.#waits = grown(this.#waits, at + 1)
      this.#idEnds = grown(this.#idEnds, at + 1)
      this.#payloadEnds = grown(this.#payloadEnds, at + 1)
    }
    if (this.#idsUsed + ID_BYTES_MAX > this.#ids.length)
      this.#ids = grown(this.#ids, this.#idsUsed + ID_BYTES_MAX)
    this.#idsUsed += encoder.encodeInto(id, this.#ids.subarray(this.#idsUsed)).written
    this.#model[at] = model
    this.#lengths[at] = length
    this.#deadlines[at] = this.deadlineMs
    this.#anyDeadline ||= this.deadlineMs > 0
    this.deadlineMs = 0
    this.#waits[at] = this.maxWaitMs
    this.#anyWait ||= this.maxWaitMs > 0
    this.maxWaitMs = 0
    this.#idEnds[at] = this.#idsUsed
    this.#payloadEnds[at] = this.#payloadsUsed
    this.#count = at + 1
  }
}

function grown<T extends Int32Array | Uint32Array | Uint8Array>(column: T, atLeast: number): T {
  const Column = column.constructor as new (length: number) => T
  const larger = new Column(Math.max(atLeast, 2 * column.length))
  larger.set(column)
  return larger
}
