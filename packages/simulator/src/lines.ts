// The lines of the output: one JSON object per effect (interfaces.md, Simulate). Field order is part
// of the output, so that two runs are equal byte for byte.
import type {
  ClosedBy,
  Contract,
  DeathCause,
  GateReason,
  SettledStatus,
  Source,
} from '@fabric/core'
import type { ConsumerData } from './scenario/schema.js'

export interface DispatchLine {
  readonly type: 'dispatch'
  readonly atUs: number
  readonly batch: number
  readonly consumer: string
  readonly model: number
  readonly items: readonly string[]
  readonly paddedLength: number
  readonly actualTokens: number
  readonly budgetTokens: number
  readonly fill: number
  readonly closedBy: ClosedBy
  readonly source: Source
  readonly sources: Readonly<Record<Source, number>>
  readonly cleanup: boolean
  readonly normal: boolean
  readonly attempts: number
  /** The suspect group that it is (S27), or null. */
  readonly group: number | null
}

export interface At {
  readonly atUs: number
}

export type Line =
  | (At & { readonly type: 'gate'; readonly reason: GateReason })
  | (At & {
      readonly type: 'register'
      readonly consumer: string
      readonly contract: Partial<Contract>
    })
  | (At & { readonly type: 'activate'; readonly model: number; readonly paddedLength: number })
  | (At & { readonly type: 'refuse'; readonly item: string; readonly code: string })
  | (At & { readonly type: 'refuse'; readonly consumer: string; readonly code: string })
  | (At & { readonly type: 'duplicate'; readonly item: string })
  | DispatchLine
  | (At & { readonly type: 'taken'; readonly batch: number })
  | (At & {
      readonly type: 'settle'
      readonly batch: number | null
      readonly consumer: string | null
      readonly results: readonly (readonly [string, SettledStatus])[]
    })
  | (At & { readonly type: 'dead'; readonly consumer: string; readonly cause: DeathCause })
  | (At & {
      readonly type: 'reclaim'
      readonly consumer: string
      readonly batches: readonly number[]
      readonly items: readonly string[]
    })
  | (At & { readonly type: 'late'; readonly item: string })
  | (At & { readonly type: 'cleanup'; readonly model: number; readonly state: 'begin' | 'end' })
  | (At & { readonly type: 'quarantine'; readonly item: string })
  /** The broker began a new life; so many items that waited or were leased are gone with the old. */
  | (At & { readonly type: 'restart'; readonly lost: number })

export type LineBody = Line extends infer L ? (L extends Line ? Omit<L, 'atUs'> : never) : never

/** The four integers, and what the scenario says beside them. */
export function contractOf(data: ConsumerData): Partial<Contract> {
  const { batchSize, tokens, inputLength, model, layout, roundTo, maxInFlight } = data
  return {
    batchSize,
    tokens,
    inputLength,
    model,
    ...(layout === undefined ? {} : { layout }),
    ...(roundTo === undefined ? {} : { roundTo }),
    ...(maxInFlight === undefined ? {} : { maxInFlight }),
  }
}
