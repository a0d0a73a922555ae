import { describe, expect, it } from 'vitest'
import { gatherRowsInScript } from '../dist/gather-in-script.js'
import { gatherRows } from '../dist/index.js'

const sources = [16, 8, 0].map((size) => Uint8Array.from({ length: size }, (_, i) => i + 1).buffer)

/** What is left in the target, or the error's class and text. */
function outcome(gather: typeof gatherRows, numbers: number[], columns: Uint32Array[]) {
  const target = new Uint8Array(32).fill(0xee)
  const [offset, stride, rows] = numbers as [number, number, number]
  const [index, from, length] = columns as [Uint32Array, Uint32Array, Uint32Array]
  try {
    gather(target.buffer, offset, stride, rows, sources, index, from, length)
  } catch (error) {
    const { name, message } = error as Error
    // The two sides word a number that is none differently.
    return { name, message: /whole/.test(message) ? '' : message, target }
  }
  return { target }
}

describe('gatherRows without an addon', () => {
  it('leaves the same bytes and the same errors as the addon for 5000 drawn calls', () => {
    let seed = 7
    const draw = (below: number) => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
      return (seed >>> 8) % below
    }
    let refused = 0
    for (let round = 0; round < 5000; round++) {
      const rows = draw(5)
      const column = (below: number) => Uint32Array.from({ length: rows }, () => draw(below))
      const numbers = [draw(34), draw(3) * 4, draw(20) === 0 ? rows + 1 : rows]
      const columns = [column(draw(8) === 0 ? 4 : 2), column(9), column(7)]
      const expected = outcome(gatherRows, numbers, columns)
      if ('message' in expected) refused += 1
      expect(outcome(gatherRowsInScript, numbers, columns)).toEqual(expected)
    }
    expect(refused).toBeGreaterThan(500)
    expect(refused).toBeLessThan(4500)
  })

  it.each([
    [-1, 8, 1],
    [0, 0.5, 1],
    [0, 8, Number.NaN],
  ])('refuses %s, %s, %s', (...numbers) => {
    const columns = [0, 0, 1].map((value) => Uint32Array.of(value))
    const { name, target } = outcome(gatherRowsInScript, numbers, columns)
    expect(name).toBe('RangeError')
    expect(target.every((byte) => byte === 0xee)).toBe(true)
  })
})
