// The metrics of interfaces.md, each with where its value is read. No series per item, job or lane;
// a consumer's series end when it is gone.

import type { CoreCounts } from '@fabric/core'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { BrokerState, DiskState } from '../state.js'
import type { Stats } from '../stats.js'
import {
  bucketSamples,
  histogramSamples,
  type Reading,
  registerReading,
  type Sample,
} from './exposition.js'

const FILL_BOUNDS = [
  0.1, 0.25, 0.5, 0.75, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 1,
]

interface Sources {
  readonly stats: Stats
  /** Made anew for each scrape. */
  readonly counts: () => CoreCounts
  readonly state: () => BrokerState
  readonly rings: () => { tailGapBytes: number; claimRetries: number; fulls: number }
}

type Define = (
  name: string,
  help: string,
  type: Reading['type'],
  read: () => number | readonly Sample[],
) => void

export function makeRegistry(sources: Sources): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const define: Define = (name, help, type, read) =>
    registerReading(registry, {
      name: `fabric_${name}`,
      help,
      type,
      read: () => {
        const values = read()
        return typeof values === 'number' ? [{ value: values }] : values
      },
    })
  defineItems(define, sources)
  defineQueue(define, sources)
  defineBatches(define, sources)
  defineConsumers(define, sources)
  defineDisk(define, sources)
  return registry
}

const byLabel = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }))

/** Beyond a thousand models a broker counts the rest as one. */
const modelLabel = (model: number) => (model < 0 ? 'other' : String(model))

function defineItems(define: Define, { stats, counts }: Sources): void {
  define('items_submitted_total', 'Items accepted', 'counter', () =>
    Array.from(stats.submittedByModel, ([model, value]) => ({
      labels: { model: modelLabel(model) },
      value,
    })),
  )
  define('items_settled_total', 'Items that ended, by status', 'counter', () =>
    Array.from(stats.settledByModel).flatMap(([model, statuses]) =>
      byLabel('status', statuses).map((sample) => ({
        ...sample,
        labels: { model: modelLabel(model), ...sample.labels },
      })),
    ),
  )
  define('rejected_total', 'Items refused, by reason', 'counter', () =>
    byLabel('reason', stats.rejected),
  )
  define(
    'reclaimed_items_total',
    'Items taken back from dead consumers',
    'counter',
    () => counts().reclaimedItems,
  )
  define(
    'results_late_total',
    'Results dropped because their item had ended',
    'counter',
    () => counts().lateResults,
  )
  define('quarantined_items', 'Items in quarantine', 'gauge', () => counts().quarantine.items)
  define('item_queue_seconds', 'Time from acceptance to dispatch', 'histogram', () =>
    bucketSamples('fabric_item_queue_seconds', stats.queueSeconds),
  )
}

function defineQueue(define: Define, { counts }: Sources): void {
  define('queue_items', 'Items waiting, by tier', 'gauge', () =>
    Object.entries(counts().queue).map(([tier, { items }]) => ({ labels: { tier }, value: items })),
  )
  define('queue_tokens', 'Tokens waiting, by tier', 'gauge', () =>
    Object.entries(counts().queue).map(([tier, { tokens }]) => ({
      labels: { tier },
      value: tokens,
    })),
  )
  define(
    'oldest_item_age_seconds',
    'Age of the item that waits longest',
    'gauge',
    () => counts().oldestItemAgeNs / 1e9,
  )
  define('lanes_active', 'Shapes with an active lane', 'gauge', () => counts().lanesActive)
  define('gate_open', 'Whether the release gate is open', 'gauge', () => Number(counts().gate.open))
  define('gate_opened_info', 'Why the gate opened', 'gauge', () => {
    const { reason } = counts().gate
    return reason === null ? [] : [{ labels: { reason }, value: 1 }]
  })
  define(
    'gate_held_seconds',
    'How long the gate was closed with items held',
    'gauge',
    () => counts().gate.heldNs / 1e9,
  )
  define(
    'cleanup_entries_total',
    'Times that a model entered cleanup',
    'counter',
    () => counts().cleanup.entries,
  )
  define('cleanup_seconds_total', 'Time in cleanup', 'counter', () => counts().cleanup.ns / 1e9)
  define(
    'cleanup_batches_total',
    'Batches sent in cleanup',
    'counter',
    () => counts().cleanup.batches,
  )
  define('cleanup_items_total', 'Items sent in cleanup', 'counter', () => counts().cleanup.items)
}

function defineBatches(define: Define, { stats }: Sources): void {
  define(
    'batch_assembly_seconds',
    'From the decision to serve a consumer until the batch stands in its channel (S22)',
    'histogram',
    () => bucketSamples('fabric_batch_assembly_seconds', stats.assembly.buckets),
  )
  define('batch_fill_ratio', 'Budget tokens over the contract’s tokens', 'histogram', () =>
    histogramSamples(
      'fabric_batch_fill_ratio',
      FILL_BOUNDS,
      (i) => stats.fill.countUpTo(FILL_BOUNDS[i]),
      stats.fill.sum,
      stats.fill.count,
    ),
  )
  define('batch_items', 'Items per batch', 'histogram', () =>
    bucketSamples('fabric_batch_items', stats.batchItems),
  )
  define('batch_closed_total', 'Batches by what closed them', 'counter', () =>
    byLabel('reason', stats.closedBy),
  )
  define('batch_source_total', 'Batches by their first source', 'counter', () =>
    byLabel('source', stats.source),
  )
  define(
    'batch_padded_tokens_total',
    'Tokens sent, padding included',
    'counter',
    () => stats.paddedTokens,
  )
  define('batch_actual_tokens_total', 'Tokens sent', 'counter', () => stats.actualTokens)
}

function defineConsumers(define: Define, { state, rings }: Sources): void {
  const each = (read: (consumer: BrokerState['consumers'][number]) => number | null) => () =>
    state().consumers.flatMap((consumer) => {
      const value = read(consumer)
      return value === null ? [] : [{ labels: { consumer: consumer.name }, value }]
    })
  define('consumers', 'Consumers connected, by state', 'gauge', () => {
    const { consumers } = state()
    const draining = consumers.filter((consumer) => consumer.state === 'draining').length
    return byLabel('state', { live: consumers.length - draining, draining })
  })
  define(
    'channel_batches',
    'Batches dispatched and not taken',
    'gauge',
    each((c) => c.channelBatches),
  )
  define(
    'shape_switches_total',
    'Batches of another shape than the one before',
    'counter',
    each((c) => c.shapeSwitches),
  )
  define(
    'consumer_idle_seconds_total',
    'Time with nothing to do',
    'counter',
    each((c) => c.idleSeconds),
  )
  define(
    'ring_used_bytes',
    'Bytes of the ring in use',
    'gauge',
    each((c) => c.ring?.usedBytes ?? null),
  )
  define(
    'ring_page_size_bytes',
    'Page size of the ring',
    'gauge',
    each((c) => c.ring?.pageSizeBytes ?? null),
  )
  define(
    'ring_tail_gap_bytes_total',
    'Bytes given up at the end of rings',
    'counter',
    () => rings().tailGapBytes,
  )
  define(
    'ring_claim_retries_total',
    'Claims that lost a race',
    'counter',
    () => rings().claimRetries,
  )
  define('ring_full_total', 'Claims that found no room', 'counter', () => rings().fulls)
}

/** No samples in memory mode without a spill. */
function defineDisk(define: Define, { state }: Sources): void {
  const onDisk = (read: (disk: DiskState) => number) => () => {
    const { storage } = state()
    const disk = storage.mode === 'disk' ? storage : storage.spill
    return disk === null ? [] : [{ labels: {}, value: read(disk) }]
  }
  define(
    'disk_file_bytes',
    'Bytes of the data file',
    'gauge',
    onDisk((disk) => disk.fileBytes),
  )
  define(
    'disk_used_bytes',
    'Bytes of the data file that are in use',
    'gauge',
    onDisk((disk) => disk.usedBytes),
  )
  define(
    'disk_appending_bytes',
    'Bytes of items on their way to the disk',
    'gauge',
    onDisk((disk) => disk.appendingBytes),
  )
  define(
    'disk_settling_bytes',
    'Bytes of results on their way to the disk',
    'gauge',
    onDisk((disk) => disk.settlingBytes),
  )
  define(
    'disk_degraded',
    'Whether the disk refuses writes or has only its reserve left, so that nothing new is accepted',
    'gauge',
    onDisk((disk) => Number(disk.health.state === 'degraded')),
  )
}
