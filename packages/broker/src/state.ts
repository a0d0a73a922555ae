// GET /v1/state: everything a status page, a command or a run's final report needs. The types are
// public; the numbers come from the core's counts, the shell's statistics and the consumers.

import type { CoreCounts } from '@fabric/core'
import type { RingState } from './channels/channel.js'
import type { Consumer } from './engine-parts.js'
import type { RatioHistogram } from './metrics/ratio-histogram.js'
import type { Stats } from './stats.js'
import type { StoreHealth } from './storage/store.js'

/** Ratios, to four decimals, by nearest rank; null while nothing is counted. */
export interface FillPercentiles {
  readonly batches: number
  readonly p1: number | null
  readonly p10: number | null
  readonly p50: number | null
  readonly p90: number | null
  readonly p99: number | null
  readonly mean: number | null
}

export interface ConsumerState {
  readonly name: string
  readonly state: 'live' | 'draining'
  readonly model: number
  readonly contract: CoreCounts['consumers'][number]['contract']
  readonly transport: 'ring' | 'socket'
  /** Why this transport, in words. */
  readonly transportReason: string
  readonly ring: RingState | null
  /** Batches that took the socket although there is a ring. */
  readonly viaSocket: number
  readonly pid: number
  readonly uid: number
  readonly host: string
  readonly connectedSeconds: number
  readonly overdue: boolean
  readonly channelBatches: number
  readonly inFlight: number
  readonly batches: number
  readonly items: number
  readonly shapeSwitches: number
  readonly idleSeconds: number
  /** Share of the time between the first dispatch and the end of input; null before the first. */
  readonly idleShareDuringInput: number | null
}

export interface DiskState {
  readonly fileBytes: number
  readonly usedBytes: number
  /** Accepted items and results that are on their way to the disk. */
  readonly appendingBytes: number
  readonly settlingBytes: number
  readonly health: StoreHealth
}

export type StorageState =
  | {
      readonly mode: 'memory'
      readonly durable: false
      /** Where what memory has no room for waits, if there is such a folder. */
      readonly spill: ({ readonly spillDir: string } & DiskState) | null
    }
  | ({ readonly mode: 'disk'; readonly durable: true; readonly dataDir: string } & DiskState)

export interface BrokerState {
  readonly version: string
  readonly startedAt: string
  readonly uptimeSeconds: number
  readonly draining: boolean
  readonly storage: StorageState
  /** Jobs that are held until their results are read (S34). */
  readonly stalledJobs: readonly {
    readonly id: string
    readonly waiting: number
    readonly unreadResultBytes: number
    readonly reason: string
  }[]
  readonly socketPath: string
  readonly httpUrl: string
  readonly gate: CoreCounts['gate']
  readonly items: {
    readonly accepted: number
    readonly duplicate: number
    readonly rejected: Readonly<Record<string, number>>
    readonly waiting: number
    readonly waitingTokens: number
    readonly leased: number
    readonly settled: CoreCounts['settled']
    readonly reclaimed: number
    readonly late: number
  }
  readonly queue: CoreCounts['queue']
  readonly oldestItemSeconds: number
  readonly lanesActive: number
  readonly batches: {
    readonly count: number
    readonly items: number
    readonly bytes: number
    readonly normal: { readonly count: number; readonly items: number }
    /** Share of items in normal batches, from the start until now. */
    readonly normalItemShare: number | null
    readonly alone: number
    readonly closedBy: Readonly<Record<string, number>>
    readonly normalClosedBy: Readonly<Record<string, number>>
    readonly source: Readonly<Record<string, number>>
    readonly actualTokens: number
    readonly paddedTokens: number
    /** 1 - actual / padded. */
    readonly paddingWaste: number | null
    readonly fill: {
      readonly all: FillPercentiles
      readonly normal: FillPercentiles
      /** All but the last consumers x (channelDepth + 1). */
      readonly beforeTail: FillPercentiles
    }
  }
  /** From the decision to serve a consumer until the batch stands in its channel (S22). */
  readonly assembly: {
    readonly count: number
    readonly meanUs: number | null
    readonly p50Us: number | null
    readonly p90Us: number | null
    readonly p99Us: number | null
    readonly longestUs: number | null
  }
  readonly cleanup: {
    readonly entries: number
    readonly seconds: number
    readonly batches: number
    readonly items: number
    /** Models in cleanup now. */
    readonly models: readonly number[]
  }
  readonly models: CoreCounts['models']
  readonly unserved: CoreCounts['unservedItems']
  readonly consumers: readonly ConsumerState[]
  readonly jobs: { readonly known: number; readonly ended: number }
  readonly rings: { readonly usedBytes: number; readonly maxBytes: number }
  readonly process: {
    readonly residentBytes: number
    readonly externalBytes: number
    readonly arenaBytes: number
  }
}

/** What the broker adds to counts and statistics. */
export type StateFrame = Pick<
  BrokerState,
  | 'version'
  | 'startedAt'
  | 'uptimeSeconds'
  | 'draining'
  | 'socketPath'
  | 'httpUrl'
  | 'jobs'
  | 'rings'
  | 'storage'
  | 'stalledJobs'
>

const NS = 1e9
const ratio = (value: number) => Math.round(value * 1e4) / 1e4
const seconds = (ns: number) => Math.round(ns / 1e3) / 1e6

export function makeState(
  frame: StateFrame,
  counts: CoreCounts,
  stats: Stats,
  consumers: ReadonlyMap<number, Consumer>,
  now: number,
): BrokerState {
  const { rss, external } = process.memoryUsage()
  return {
    ...frame,
    gate: counts.gate,
    items: {
      accepted: counts.accepted,
      duplicate: stats.duplicates,
      rejected: { ...stats.rejected },
      waiting: counts.waiting.items,
      waitingTokens: counts.waiting.tokens,
      leased: counts.leased,
      settled: counts.settled,
      reclaimed: counts.reclaimedItems,
      late: counts.lateResults,
    },
    queue: counts.queue,
    oldestItemSeconds: seconds(counts.oldestItemAgeNs),
    lanesActive: counts.lanesActive,
    batches: batchesOf(counts, stats),
    assembly: {
      count: stats.assembly.count,
      meanUs: stats.assembly.meanUs,
      p50Us: stats.assembly.percentileUs(50),
      p90Us: stats.assembly.percentileUs(90),
      p99Us: stats.assembly.percentileUs(99),
      longestUs: stats.assembly.longestUs,
    },
    cleanup: {
      entries: counts.cleanup.entries,
      seconds: seconds(counts.cleanup.ns),
      batches: counts.cleanup.batches,
      items: counts.cleanup.items,
      models: counts.cleanup.models,
    },
    models: counts.models,
    unserved: counts.unservedItems,
    consumers: counts.consumers.flatMap((each) => {
      const consumer = consumers.get(each.id)
      return consumer === undefined ? [] : [consumerState(each, consumer, counts, now)]
    }),
    process: { residentBytes: rss, externalBytes: external, arenaBytes: counts.arenaBytes },
  }
}

function batchesOf(counts: CoreCounts, stats: Stats): BrokerState['batches'] {
  const { batches, items, bytes, actualTokens, paddedTokens } = stats
  return {
    count: batches,
    items,
    bytes,
    normal: { count: stats.normalBatches, items: stats.normalItems },
    normalItemShare: items === 0 ? null : ratio(stats.normalItems / items),
    alone: counts.aloneBatches,
    closedBy: { ...stats.closedBy },
    normalClosedBy: { ...stats.normalClosedBy },
    source: { ...stats.source },
    actualTokens,
    paddedTokens,
    paddingWaste: paddedTokens === 0 ? null : ratio(1 - actualTokens / paddedTokens),
    fill: {
      all: percentiles(stats.fill),
      normal: percentiles(stats.normalFill),
      beforeTail: percentiles(stats.fillBeforeTail),
    },
  }
}

function percentiles(fill: RatioHistogram): FillPercentiles {
  return {
    batches: fill.count,
    p1: fill.percentile(1),
    p10: fill.percentile(10),
    p50: fill.percentile(50),
    p90: fill.percentile(90),
    p99: fill.percentile(99),
    mean: fill.mean === null ? null : ratio(fill.mean),
  }
}

function consumerState(
  each: CoreCounts['consumers'][number],
  consumer: Consumer,
  counts: CoreCounts,
  now: number,
): ConsumerState {
  const { channel } = consumer.connection
  const ring = channel.ring()
  const model = counts.models.find(({ model }) => model === each.contract.model)
  return {
    name: each.name,
    state: each.state,
    model: each.contract.model,
    contract: each.contract,
    transport: channel.transport,
    transportReason: consumer.transportReason,
    ring,
    viaSocket: channel.viaSocket,
    pid: consumer.pid,
    uid: consumer.uid,
    host: consumer.host,
    connectedSeconds: (now - consumer.registeredNs) / NS,
    overdue: each.overdue,
    channelBatches: each.channel,
    inFlight: each.inFlight,
    batches: each.batches,
    items: each.items,
    shapeSwitches: each.shapeSwitches,
    idleSeconds: seconds(each.idleNs),
    idleShareDuringInput: idleShare(each.idleNsDuringInput, consumer.registeredNs, model, now),
  }
}

function idleShare(
  idleNs: number,
  registeredNs: number,
  model: CoreCounts['models'][number] | undefined,
  now: number,
): number | null {
  if (model === undefined || model.firstDispatchAt === null) return null
  const from = Math.max(model.firstDispatchAt, registeredNs)
  const lastedNs = (model.inputEndedAt ?? now) - from
  return lastedNs <= 0 ? null : ratio(Math.min(1, idleNs / lastedNs))
}
