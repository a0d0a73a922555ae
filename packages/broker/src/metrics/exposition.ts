// Metrics as readings: a name, a help text and a function that reads the values when Prometheus asks.
// The hot path therefore touches plain numbers only, and a series ends with what it was read from.
import type { Registry } from 'prom-client'
import type { BucketHistogram } from './buckets.js'

export interface Sample {
  readonly value: number
  readonly labels?: Readonly<Record<string, string | number>>
  /** For histograms: the name with its suffix. */
  readonly metricName?: string
}

export interface Reading {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  read(): readonly Sample[]
}

export function registerReading(registry: Registry, reading: Reading): void {
  const metric = {
    name: reading.name,
    help: reading.help,
    type: reading.type,
    aggregator: 'sum',
    get: async () => ({
      name: reading.name,
      help: reading.help,
      type: reading.type,
      aggregator: 'sum',
      values: reading.read().map((sample) => ({ labels: {}, ...sample })),
    }),
    reset: () => {},
  }
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0])
}

/** The samples of one histogram: cumulative buckets, sum and count. */
export function histogramSamples(
  name: string,
  bounds: readonly number[],
  countUpTo: (index: number) => number,
  sum: number,
  count: number,
): Sample[] {
  const buckets = bounds.map((bound, i) => ({
    metricName: `${name}_bucket`,
    labels: { le: bound },
    value: countUpTo(i),
  }))
  return [
    ...buckets,
    { metricName: `${name}_bucket`, labels: { le: '+Inf' }, value: count },
    { metricName: `${name}_sum`, value: sum },
    { metricName: `${name}_count`, value: count },
  ]
}

export function bucketSamples(name: string, histogram: BucketHistogram): Sample[] {
  const { bounds, counts, sum, count } = histogram
  const upTo: number[] = []
  let seen = 0
  for (const each of counts) {
    seen += each
    upTo.push(seen)
  }
  return histogramSamples(name, bounds, (i) => upTo[i], sum, count)
}
