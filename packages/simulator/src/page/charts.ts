// The charts of the page, each from what the recorder holds.
import type { Ratios } from '../report/ratios.js'
import { percent, time, tokens, unitFor, whole } from './numbers.js'
import type { Recorder, TailBatch } from './recorder.js'
import {
  across,
  colour,
  element,
  FRAME,
  type Frame,
  line,
  svg,
  text,
  upward,
  xAxis,
  yAxis,
} from './svg.js'

const LAYERS = [
  ['staging', 'stagingTokens'],
  ['lane', 'laneTokens'],
  ['returned', 'returnedTokens'],
] as const

/** Waiting tokens by tier, the gate and cleanup, over time. */
export function queueChart({ series, gates, endNs }: Recorder): string {
  const samples = series.filled(endNs)
  const unit = unitFor(endNs)
  const span = Math.max(endNs, series.widthNs)
  const total = samples.map((one) => one.stagingTokens + one.laneTokens + one.returnedTokens)
  const most = Math.max(1, ...total) * 1.08
  const x = across(FRAME, span)
  const y = upward(FRAME, most)
  const at = (i: number) => x(Math.min(span, i * series.widthNs))
  const bands = samples.map((one, i) =>
    one.cleanup
      ? element('rect', {
          x: at(i),
          y: FRAME.top,
          width: Math.max(0.8, at(i + 1) - at(i)),
          height: FRAME.height - FRAME.top - FRAME.bottom,
          class: 'cleanup',
        })
      : '',
  )
  const lower = samples.map(() => 0)
  // Steps: what waits goes on until the next sample.
  const steps = () =>
    samples.flatMap((_, i) => {
      const level = fixed(y(lower[i]))
      return [`${fixed(at(i))},${level}`, `${fixed(at(i + 1))},${level}`]
    })
  const areas = LAYERS.map(([kind, key]) => {
    if (samples.every((one) => one[key] === 0)) return ''
    const below = steps().reverse()
    samples.forEach((one, i) => {
      lower[i] += one[key]
    })
    return element('polygon', { points: [...steps(), ...below].join(' '), class: kind })
  })
  const marks = gates.map(({ atNs, reason }) => {
    const right = x(atNs) > FRAME.width * 0.7
    return (
      line(x(atNs), FRAME.top, x(atNs), FRAME.height - FRAME.bottom, 'gate') +
      text(x(atNs) + (right ? -5 : 5), FRAME.top + 10, `gate opens: ${reason}`, {
        class: 'gate-label',
        'text-anchor': right ? 'end' : 'start',
      })
    )
  })
  const hover = samples.map((one, i) =>
    element('rect', {
      x: at(i),
      y: FRAME.top,
      width: Math.max(0.5, at(i + 1) - at(i)),
      height: FRAME.height - FRAME.top - FRAME.bottom,
      class: 'hover',
      'data-tip': `${time(i * series.widthNs)}: staging ${tokens(one.stagingTokens)}, lanes ${tokens(one.laneTokens)}, returned ${tokens(one.returnedTokens)} tokens; ${whole(one.leasedItems)} items leased; gate ${one.gateOpen ? 'open' : 'closed'}${one.cleanup ? '; cleanup' : ''}`,
    }),
  )
  return svg(
    FRAME,
    'Waiting tokens over time',
    bands.join('') +
      yAxis(FRAME, most, 'waiting tokens', tokens) +
      areas.join('') +
      marks.join('') +
      xAxis(FRAME, span / unit.ns, `time, ${unit.name}`, trim) +
      hover.join(''),
  )
}

const HALF: Frame = { ...FRAME, width: 470, height: 230, right: 28 }
const BARS = 50

/** Where the axis may begin and end: what lies beyond stands in the outermost bar. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** The part of 0 to 1 that holds all but a hundredth of the values, in round numbers. */
export function fillRange(of: readonly Ratios[]): Range {
  const least = Math.min(...of.map((ratios) => ratios.percentiles().p1))
  return { from: [0.95, 0.9, 0.8, 0.5].find((edge) => edge <= least) ?? 0, to: 1 }
}

export function paddingRange(ratios: Ratios): Range {
  const { p99 } = ratios.percentiles()
  return { from: 0, to: [0.1, 0.2, 0.5].find((edge) => edge >= p99) ?? 1 }
}

/** Share of the batches by ratio; `reference` is drawn as a line over the bars. */
export function histogram(
  label: string,
  ratios: Ratios,
  reference: Ratios | null,
  range: Range,
): string {
  const bars = binned(ratios, range)
  const others = reference === null ? [] : binned(reference, range)
  const most = Math.max(0.05, ...bars, ...others) * 1.08
  const width = range.to - range.from
  const x = across(HALF, 1)
  const y = upward(HALF, most)
  const base = HALF.height - HALF.bottom
  const edge = (bar: number) => percent(range.from + (bar / BARS) * width, width < 0.3 ? 1 : 0)
  const drawn = bars.map((share, i) =>
    share === 0
      ? ''
      : element('rect', {
          x: x(i / BARS) + 0.5,
          y: y(share),
          width: x(1 / BARS) - x(0) - 1,
          height: Math.max(1, base - y(share)),
          class: 'bar',
          'data-tip': `${tipEdges(i, range, edge)}: ${percent(share, 2)} of the batches`,
        }),
  )
  const points = others.flatMap((share, i) => [
    `${fixed(x(i / BARS))},${fixed(y(share))}`,
    `${fixed(x((i + 1) / BARS))},${fixed(y(share))}`,
  ])
  const outline =
    points.length === 0 ? '' : element('polyline', { points: points.join(' '), class: 'reference' })
  const name = (value: number) =>
    (value === 0 && range.from > 0 ? 'below ' : '') + percent(range.from + value * width, 0)
  return svg(
    HALF,
    label,
    yAxis(HALF, most, 'share of batches', (value) => percent(value, 0)) +
      drawn.join('') +
      outline +
      xAxis(HALF, 1, label, name, 5),
  )
}

function tipEdges(bar: number, { from, to }: Range, edge: (bar: number) => string): string {
  if (bar === 0 && from > 0) return `up to ${edge(1)}`
  if (bar === BARS - 1 && to < 1) return `${edge(bar)} and more`
  return `${edge(bar)} to ${edge(bar + 1)}`
}

function binned(ratios: Ratios, { from, to }: Range): number[] {
  const bars = Array<number>(BARS).fill(0)
  for (const [value, times] of ratios.entries()) {
    const place = Math.ceil(((value - from) / (to - from)) * BARS - 1e-9) - 1
    bars[Math.max(0, Math.min(BARS - 1, place))] += times / ratios.count
  }
  return bars
}

const ROW = 22
const CONSUMERS_MAX = 40

/** Each consumer's time: colour by padded length, pale where it was idle within a stretch. */
export function timelineChart(recorder: Recorder, fromNs = 0): string {
  const { work, endNs } = recorder
  const names = [...work.keys()].slice(0, CONSUMERS_MAX)
  const longestName = Math.max(0, ...names.map((name) => name.length))
  const left = Math.min(220, Math.max(FRAME.left, 20 + longestName * 7))
  const frame = { ...FRAME, left, height: names.length * ROW + FRAME.bottom + 4, top: 2 }
  const span = Math.max(1, endNs - fromNs)
  const unit = unitFor(endNs)
  const x = across(frame, span)
  const rows = names.map((name, row) => {
    const top = frame.top + row * ROW
    const back = element('rect', {
      x: frame.left,
      y: top + 2,
      width: frame.width - frame.left - frame.right,
      height: ROW - 5,
      class: 'idle',
    })
    const { stretches: all, recent } = work.get(name)!
    const stretches = (fromNs > 0 ? recent : all).filter(({ to }) => to > fromNs)
    const drawn = stretches.map((one) => {
      const from = x(Math.max(0, one.from - fromNs))
      const share = one.busyNs / Math.max(1, one.to - one.from)
      const what =
        one.batches === 1
          ? `padded length ${whole(one.paddedLength)}`
          : `${whole(one.batches)} batches, the longest at padded length ${whole(one.paddedLength)}, busy ${percent(share)}`
      return element('rect', {
        x: from,
        y: top + 2,
        width: Math.max(0.4, x(one.to - fromNs) - from - 0.3),
        height: ROW - 5,
        fill: colour(shapeShare(recorder, one.paddedLength)),
        'fill-opacity': Math.max(0.15, share),
        class: one.broken ? 'broken' : undefined,
        'data-tip': `${name}, ${time(one.from)} to ${time(one.to)}: ${what}${one.broken ? ', broken off' : ''}`,
      })
    })
    return (
      back +
      drawn.join('') +
      text(frame.left - 8, top + ROW / 2 + 3, name, { 'text-anchor': 'end' })
    )
  })
  const offset = fromNs / unit.ns
  const axis = xAxis(frame, span / unit.ns, `time, ${unit.name}`, (value) => trim(value + offset))
  return svg(frame, 'What each consumer worked on', rows.join('') + axis)
}

/** Place of a padded length between the shortest and the longest, by its logarithm. */
function shapeShare({ shortest, longest }: Recorder, paddedLength: number): number {
  if (longest <= shortest) return 0
  return Math.log(paddedLength / shortest) / Math.log(longest / shortest)
}

/** Which colour is which padded length. */
export function shapeLegend(recorder: Recorder): string {
  const { shortest, longest } = recorder
  if (longest === 0) return ''
  const steps = longest === shortest ? 1 : 5
  return Array.from({ length: steps }, (_, i) => {
    const share = steps === 1 ? 0 : i / (steps - 1)
    const length = Math.round((shortest * (longest / shortest) ** share) / 8) * 8
    const shown = i === 0 ? shortest : i === steps - 1 ? longest : length
    return `<span><i style="background:${colour(share)}"></i>${whole(shown)}</span>`
  }).join('')
}

/** The last batches: how full each is, and how much of that is padding. */
export function tailChart({ tail }: Recorder): string {
  const most = Math.max(1, ...tail.map(({ fill }) => fill)) * 1.05
  const y = upward(FRAME, most)
  const base = FRAME.height - FRAME.bottom
  const width = (FRAME.width - FRAME.left - FRAME.right) / Math.max(12, tail.length)
  const bars = tail.map((batch, i) => {
    const x = FRAME.left + i * width + 0.6
    const bar = (value: number, kind: string) =>
      element('rect', { x, y: y(value), width: width - 1.2, height: base - y(value), class: kind })
    const label =
      i % 6 === 0
        ? text(x + width / 2, base + 16, String(batch.number), { 'text-anchor': 'middle' })
        : ''
    return element(
      'g',
      { 'data-tip': tipOf(batch) },
      bar(batch.fill, 'padding') + bar(batch.useful, `tail-${batch.kind}`) + label,
    )
  })
  const middle = (FRAME.left + FRAME.width - FRAME.right) / 2
  return svg(
    FRAME,
    'Fill of the last batches',
    yAxis(FRAME, most, 'share of the budget', (value) => percent(value, 0)) +
      bars.join('') +
      line(FRAME.left, base, FRAME.width - FRAME.right, base, 'axis') +
      text(middle, FRAME.height - 6, 'batch', { 'text-anchor': 'middle', class: 'label' }),
  )
}

const tipOf = ({ number, atNs, consumer, size, paddedLength, fill, closedBy, kind }: TailBatch) =>
  `batch ${number} at ${time(atNs)} for ${consumer}: ${whole(size)} items x ${whole(paddedLength)}, fill ${percent(fill)}, ${closedBy}, ${kind}`

const fixed = (value: number): string => String(Math.round(value * 10) / 10)
const trim = (value: number): string => String(Number(value.toPrecision(6)))
