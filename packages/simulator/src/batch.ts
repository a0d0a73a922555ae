// One dispatched batch, as the simulation remembers it until its consumer has done with it.
import type { DispatchEffect } from '@fabric/core'

export interface SimulatedBatch {
  /** As the core numbers it; each life of the broker begins anew. */
  readonly coreNumber: number
  /** As lines number it: never used again. */
  readonly number: number
  readonly brokerLife: bigint
  /** The consumer's number in that life. */
  readonly consumerNumber: number
  readonly model: number
  readonly size: number
  readonly paddedLength: number
  readonly actualTokens: number
  readonly budgetTokens: number
  readonly fill: number
  readonly closedBy: DispatchEffect['closedBy']
  readonly normal: boolean
  readonly cleanup: boolean
  /** Of its items; null when nothing asks for them. */
  readonly names: readonly string[] | null
  /** It holds an item that kills who takes it. */
  readonly isPoison: boolean
  /** Sum of the times of acceptance of its items: what waiting times are made of. */
  readonly acceptedAtNsSum: number
  /** Its place among the batches that its consumer took; 0 until it is taken. */
  nth: number
}
