// What the broker says of itself: its state, whether it is ready and well, its metrics.
import type { CoreCounts } from '@fabric/core'
import type { RingBudget } from './channels/ring-budget.js'
import { NS_PER_MS } from './clock.js'
import type { BrokerConfig } from './config/options.js'
import type { Engine } from './engine.js'
import type { Observed, Readiness } from './http/observe-routes.js'
import type { JobLife } from './job-life.js'
import { makeRegistry } from './metrics/metrics.js'
import { type BrokerState, type DiskState, makeState } from './state.js'
import type { Stats } from './stats.js'
import type { Store } from './storage/store.js'
import { VERSION } from './version.js'

/** A scrape reads dozens of values: they are of one moment, and the counts are made once. */
const SNAPSHOT_NS = 20 * NS_PER_MS

export interface ReportParts {
  readonly config: BrokerConfig
  readonly engine: Engine
  readonly jobs: JobLife
  readonly stats: Stats
  readonly rings: RingBudget
  readonly store: Store | null
  /** What changes while the broker starts and stops. */
  readonly broker: {
    readonly socketPath: string
    readonly httpUrl: string
    readonly draining: boolean
  }
}

interface Snapshot {
  readonly counts: CoreCounts
  readonly state: BrokerState
  readonly atNs: number
}

export class Report implements Observed {
  readonly registry
  readonly #startedAt = new Date()
  #last: Snapshot | null = null

  constructor(readonly parts: ReportParts) {
    const { stats } = parts
    this.registry = makeRegistry({
      stats,
      counts: () => this.#snapshot().counts,
      state: () => this.#snapshot().state,
      rings: () => stats.ringTotals(this.#snapshot().state.consumers),
    })
  }

  state(): BrokerState {
    const { config, engine, jobs, stats, rings, broker } = this.parts
    const now = engine.now()
    const known = Array.from(jobs.jobs)
    return makeState(
      {
        version: VERSION,
        startedAt: this.#startedAt.toISOString(),
        uptimeSeconds: now / 1e9,
        draining: broker.draining,
        socketPath: broker.socketPath,
        httpUrl: broker.httpUrl,
        jobs: { known: known.length, ended: known.filter((job) => job.state === 'ended').length },
        rings: { usedBytes: rings.usedBytes, maxBytes: config.ringBytesMax },
        storage: this.#storage(),
        stalledJobs: jobs.stalled(),
      },
      engine.counts(),
      stats,
      engine.consumers,
      now,
    )
  }

  health(): 'healthy' | 'degraded' {
    return this.parts.store?.health.state === 'degraded' ? 'degraded' : 'healthy'
  }

  readiness(): Readiness {
    const { config, engine, store, broker } = this.parts
    const { unservedItems } = engine.counts()
    const health = store?.health
    const refusal =
      config.dataDir === null ? 'no more than memory holds is accepted' : 'nothing new is accepted'
    const reasons = [
      ...(broker.draining ? ['draining'] : []),
      ...(health?.state === 'degraded' ? [`${refusal}: ${health.message}`] : []),
      ...(engine.consumers.size === 0 ? ['no consumer is connected'] : []),
      ...unservedItems.map(
        ({ model, items }) => `no consumer serves model ${model}; ${items} items wait for it`,
      ),
    ]
    return { ready: reasons.length === 0, reasons }
  }

  info(): Record<string, unknown> {
    const { config, broker } = this.parts
    const { maxBodyBytes, maxItemsPerRequest, maxItemBytes, maxQueuedItems, maxQueuedTokens } =
      config
    return {
      name: 'fabric-broker',
      version: VERSION,
      storage: { mode: config.mode, durable: config.dataDir !== null },
      socketPath: broker.socketPath,
      limits: { maxBodyBytes, maxItemsPerRequest, maxItemBytes, maxQueuedItems, maxQueuedTokens },
    }
  }

  #snapshot(): Snapshot {
    const { engine } = this.parts
    const now = engine.now()
    if (this.#last === null || now - this.#last.atNs > SNAPSHOT_NS)
      this.#last = { counts: engine.counts(), state: this.state(), atNs: now }
    return this.#last
  }

  #storage(): BrokerState['storage'] {
    const { dataDir, spillDir } = this.parts.config
    const disk = this.#disk()
    if (dataDir !== null && disk !== null) return { mode: 'disk', durable: true, dataDir, ...disk }
    const spill = spillDir === null || disk === null ? null : { spillDir, ...disk }
    return { mode: 'memory', durable: false, spill }
  }

  #disk(): DiskState | null {
    const { engine, store } = this.parts
    const { disk } = engine
    if (store === null || disk === null) return null
    const appendingBytes = disk.submissions.bytesUnderWay
    const settlingBytes = disk.settlements.bytesUnderWay
    return { ...store.size(), appendingBytes, settlingBytes, health: store.health }
  }
}
