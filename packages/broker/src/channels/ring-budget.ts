// Which transport a consumer gets, and why: the size of its ring, the bound on all rings together,
// and what is said when there is none. Rings are made only after a consumer has introduced itself.

import { type BudgetRule, type Contract, mostTokens } from '@fabric/core'
import { FabricError, ID_BYTES_MAX, type TransportWish } from '@fabric/protocol'
import { RING_ABI_VERSION, RingError, RingWriter } from '@fabric/shm-ring'
import { largestBatchBytes } from './assembly.js'

export interface RingBudgetOptions {
  readonly ringBytes: number
  readonly ringBytesMax: number
  readonly channelDepth: number
  readonly maxBatchBytes: number
  readonly budgetRule: BudgetRule
  readonly hugePages: 'try' | 'require' | 'off'
}

export interface Transport {
  readonly ring: RingWriter | null
  /** In words, for a log line and the status page. */
  readonly reason: string
}

/** A ring holds so many of the largest batches: the stock, the one in work, and none half released. */
const BATCHES_PER_RING = 8
const RING_BYTES_LARGEST = 16 * 2 ** 30

export class RingBudget {
  #usedBytes = 0

  constructor(readonly options: RingBudgetOptions) {}

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** @throws FabricError FABRIC_RING_UNAVAILABLE when a ring is demanded and cannot be had. */
  open(contract: Contract, wish: TransportWish, ringAbi: number | null): Transport {
    if (wish === 'socket') return { ring: null, reason: 'the consumer asked for the socket' }
    const transport = this.#try(contract, ringAbi)
    if (transport.ring === null && wish === 'ring')
      throw new FabricError('FABRIC_RING_UNAVAILABLE', transport.reason, { field: 'transport' })
    return transport
  }

  close(ring: RingWriter): void {
    this.#usedBytes -= ring.capacityBytes
  }

  #try(contract: Contract, ringAbi: number | null): Transport {
    if (ringAbi === null) return { ring: null, reason: 'the consumer’s platform has no ring' }
    if (ringAbi !== RING_ABI_VERSION)
      return { ring: null, reason: `ring ABI ${ringAbi}, the broker’s is ${RING_ABI_VERSION}` }
    const capacityBytes = this.#capacity(contract)
    const left = this.options.ringBytesMax - this.#usedBytes
    if (capacityBytes > left)
      return {
        ring: null,
        reason: `a ring of ${capacityBytes} bytes, ${left} left of ringBytesMax`,
      }
    try {
      const ring = RingWriter.create({ capacityBytes, hugePages: this.options.hugePages })
      this.#usedBytes += capacityBytes
      return { ring, reason: `same host; ${ring.pagesReason || `${ring.pages} pages`}` }
    } catch (error) {
      if (!(error instanceof RingError)) throw error
      return { ring: null, reason: `no ring: ${error.message} (${error.code})` }
    }
  }

  #capacity(contract: Contract): number {
    const batches = Math.max(BATCHES_PER_RING, this.options.channelDepth + contract.maxInFlight + 1)
    const { maxBatchBytes, budgetRule } = this.options
    const { batchSize } = contract
    const tokens = mostTokens(contract, budgetRule)
    const largest = largestBatchBytes({ batchSize, tokens }, ID_BYTES_MAX)
    const wanted = batches * Math.min(largest, maxBatchBytes)
    const power = 2 ** Math.ceil(Math.log2(wanted))
    return Math.min(Math.max(this.options.ringBytes, power), RING_BYTES_LARGEST)
  }
}
