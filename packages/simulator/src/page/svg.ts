// The few things that the charts are drawn with: elements, scales, ticks, axes.

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}
export const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (letter) => ESCAPES[letter])

type Attributes = Readonly<Record<string, string | number | undefined>>

/** One element; `tip` is shown by the page when the pointer is on it. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(
      ([key, value]) => ` ${key}="${typeof value === 'number' ? short(value) : escaped(value!)}"`,
    )
    .join('')
  return `<${name}${written}>${content}</${name}>`
}

const short = (value: number): string => String(Math.round(value * 100) / 100)

export const text = (x: number, y: number, content: string, attributes: Attributes = {}): string =>
  element('text', { x, y, ...attributes }, escaped(content))

export const line = (x1: number, y1: number, x2: number, y2: number, kind: string): string =>
  element('line', { x1, y1, x2, y2, class: kind })

/** Round numbers from 0 to `most`, about `count` of them. */
export function ticks(most: number, count: number): number[] {
  if (most <= 0) return [0]
  const rough = most / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough)!
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step)
}

export interface Frame {
  readonly width: number
  readonly height: number
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

export const FRAME: Frame = { width: 960, height: 260, left: 68, right: 16, top: 14, bottom: 40 }

/** Maps 0 to `most` onto the frame's width, or height. */
export const across = (frame: Frame, most: number) => (value: number) =>
  frame.left + (value / most) * (frame.width - frame.left - frame.right)
export const upward = (frame: Frame, most: number) => (value: number) =>
  frame.height - frame.bottom - (value / most) * (frame.height - frame.top - frame.bottom)

export function xAxis(
  frame: Frame,
  most: number,
  label: string,
  format: (value: number) => string,
  count = 8,
): string {
  const x = across(frame, most)
  const base = frame.height - frame.bottom
  const marks = ticks(most, count).map(
    (value) =>
      line(x(value), base, x(value), base + 4, 'axis') +
      text(x(value), base + 16, format(value), { 'text-anchor': 'middle' }),
  )
  const middle = (frame.left + frame.width - frame.right) / 2
  return (
    line(frame.left, base, frame.width - frame.right, base, 'axis') +
    marks.join('') +
    text(middle, frame.height - 6, label, { 'text-anchor': 'middle', class: 'label' })
  )
}

export function yAxis(
  frame: Frame,
  most: number,
  label: string,
  format: (value: number) => string,
): string {
  const y = upward(frame, most)
  const marks = ticks(most, 4).map(
    (value) =>
      line(frame.left, y(value), frame.width - frame.right, y(value), 'grid') +
      text(frame.left - 8, y(value) + 4, format(value), { 'text-anchor': 'end' }),
  )
  const middle = (frame.top + frame.height - frame.bottom) / 2
  const turn = `rotate(-90 14 ${middle})`
  return (
    marks.join('') +
    text(14, middle, label, { 'text-anchor': 'middle', transform: turn, class: 'label' })
  )
}

export function svg(frame: Frame, label: string, content: string): string {
  const viewBox = `0 0 ${frame.width} ${frame.height}`
  return element('svg', { viewBox, role: 'img', 'aria-label': label }, content)
}

/** 0 to 1 as a colour that tells lengths apart on a light and on a dark page. */
export function colour(share: number): string {
  const stops = [
    [68, 119, 204],
    [38, 158, 160],
    [92, 176, 92],
    [222, 170, 48],
    [214, 90, 66],
  ]
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1)
  const from = Math.min(stops.length - 2, Math.floor(at))
  const mixed = stops[from].map((part, i) =>
    Math.round(part + (at - from) * (stops[from + 1][i] - part)),
  )
  return `#${mixed.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
