// A batch in the handler's hands, and its settlement item by item (S23). Its views stand where the
// bytes arrived, in the ring or in a buffer of the socket's; they end when the last item is settled.
import {
  type BatchView,
  type ErrorCode,
  FabricError,
  type ItemResult,
  type Layout,
} from '@fabric/protocol'
import { messageOf } from '../log.js'
import {
  applyInputLength,
  type BatchRows,
  type InputLengthPolicy,
  offsetsOf,
} from './input-length.js'
import {
  type BatchResults,
  completedOrFailed,
  failed,
  ItemError,
  type ItemValue,
  itemValues,
  nacked,
  type TruncatedValue,
} from './results.js'

export interface BatchOwner {
  /** Entries to send. Their values are the handler's memory: encode them before returning. */
  send(results: readonly ItemResult[]): void
  /** All items are settled and sent: the bytes may go. */
  done(): void
}

const utf8 = new TextDecoder()

export class Batch {
  readonly id: number
  readonly model: number
  readonly attempt: number
  readonly layout: Layout
  readonly size: number
  /** 0 when ragged. */
  readonly paddedLength: number
  readonly tokenCount: number
  /** size x paddedLength, row-major; ragged: one row after another, see `offsets`. */
  readonly inputIds: Int32Array
  readonly lengths: Int32Array
  /** Where each row starts and the last one ends; null when padded. */
  readonly offsets: Int32Array | null
  readonly #view: BatchView
  readonly #rows: BatchRows
  readonly #owner: BatchOwner
  readonly #isSettled: Uint8Array
  #unsettled: number
  #outbox: ItemResult[] = []
  #itemIds: readonly string[] | undefined

  /** Fails at once what the policy says is too long; the batch may be settled when this returns. */
  constructor(view: BatchView, policy: InputLengthPolicy, owner: BatchOwner) {
    const rows = applyInputLength(view, policy)
    this.id = view.batch
    this.model = view.model
    this.attempt = view.attempt
    this.layout = view.layout
    this.size = rows.size
    this.paddedLength = rows.paddedLength
    this.tokenCount = rows.tokenCount
    this.inputIds = rows.inputIds
    this.lengths = rows.lengths
    this.offsets = view.layout === 'ragged' ? offsetsOf(rows.lengths) : null
    this.#view = view
    this.#rows = rows
    this.#owner = owner
    this.#isSettled = new Uint8Array(rows.size)
    this.#unsettled = rows.size
    for (const index of rows.tooLong) this.#outbox.push(tooLong(index, view.lengths[index], policy))
    if (this.#outbox.length > 0) queueMicrotask(() => this.#flush())
  }

  /** Ids of the items, decoded at first use; empty when that comes after the batch was settled. */
  get itemIds(): readonly string[] {
    this.#itemIds ??= this.settled
      ? []
      : Array.from(this.#rows.origin, (i) =>
          utf8.decode(slice(this.#view.ids, this.#view.idEnds, i)),
        )
    return this.#itemIds
  }

  /** Opaque bytes of each item, in place; null when no item carries any. */
  get payloads(): readonly Uint8Array[] | null {
    const { payloads, payloadEnds } = this.#view
    if (payloads === null || payloadEnds === null) return null
    return this.settled ? [] : Array.from(this.#rows.origin, (i) => slice(payloads, payloadEnds, i))
  }

  /** True once every item is settled: the views have ended, or end within this turn. */
  get settled(): boolean {
    return this.#unsettled === 0
  }

  isItemSettled(index: number): boolean {
    this.#check(index)
    return this.#isSettled[index] === 1
  }

  /**
   * Completes every item that is not settled yet, with one result each. Results of the wrong number or
   * kind fail these items, as FABRIC_RESULT_MALFORMED.
   */
  ack(results: BatchResults): void {
    let values: readonly (ItemValue | TruncatedValue)[]
    try {
      values = itemValues(results, this.size)
    } catch (error) {
      this.failAll(error, { retry: false })
      return
    }
    this.#settleRest((index, place) =>
      completedOrFailed(place, values[index], this.#rows.truncatedTo[index]),
    )
  }

  /** Completes one item; `result` may be used again when this returns. */
  ackItem(index: number, result: ItemValue | TruncatedValue): void {
    this.#settleOne(index, (place) => {
      const entry = completedOrFailed(place, result, this.#rows.truncatedTo[index])
      return { ...entry, value: entry.value.slice() }
    })
  }

  /** Fails one item; with `retry` it comes back later, up to the broker's maxAttempts. */
  fail(
    index: number,
    reason: string | Error,
    { retry = false, code }: { retry?: boolean; code?: ErrorCode } = {},
  ): void {
    this.#settleOne(index, (place) =>
      failed(place, code ?? codeOf(reason), messageOf(reason), retry),
    )
  }

  /** Fails every item that is not settled yet. */
  failAll(reason: unknown, { retry }: { retry: boolean }): void {
    const code = codeOf(reason)
    this.#settleRest((_index, place) => failed(place, code, messageOf(reason), retry))
  }

  /** Gives back what is not settled yet; with `split` in halves: it was too much for the device. */
  nack({ split = false }: { split?: boolean } = {}): void {
    this.#settleRest((_index, place) => nacked(place, split))
  }

  #settleRest(entry: (index: number, place: number) => ItemResult): void {
    for (let index = 0; index < this.size; index++) {
      if (this.#isSettled[index] === 0) this.#settle(index, entry(index, this.#rows.origin[index]))
    }
    this.#flush()
  }

  /** Settlements one by one gather until the turn ends, so that they make one message. */
  #settleOne(index: number, entry: (place: number) => ItemResult): void {
    if (this.isItemSettled(index))
      throw new Error(`item ${index} of batch ${this.id} is settled already`)
    this.#settle(index, entry(this.#rows.origin[index]))
    if (this.settled) this.#flush()
    else if (this.#outbox.length === 1) queueMicrotask(() => this.#flush())
  }

  #settle(index: number, entry: ItemResult): void {
    this.#isSettled[index] = 1
    this.#unsettled -= 1
    this.#outbox.push(entry)
  }

  #check(index: number): void {
    if (!Number.isInteger(index) || index < 0 || index >= this.size)
      throw new RangeError(`batch ${this.id} has no item ${index}: it holds ${this.size}`)
  }

  /** The last flush ends the views: `done` follows the entries that settle the last item. */
  #flush(): void {
    if (this.#outbox.length === 0) return
    const results = this.#outbox
    this.#outbox = []
    this.#owner.send(results)
    if (this.settled) this.#owner.done()
  }
}

function slice(bytes: Uint8Array, ends: Uint32Array, i: number): Uint8Array {
  return bytes.subarray(i === 0 ? 0 : ends[i - 1], ends[i])
}

function codeOf(reason: unknown): ErrorCode {
  return reason instanceof FabricError || reason instanceof ItemError
    ? reason.code
    : 'FABRIC_ITEM_FAILED'
}

const tooLong = (index: number, length: number, { inputLength }: InputLengthPolicy) =>
  failed(
    index,
    'FABRIC_INPUT_TOO_LONG',
    `the item has ${length} tokens, the input length is ${inputLength}`,
    false,
  )
