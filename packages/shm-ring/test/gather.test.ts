import { describe, expect, it } from 'vitest'
import { gatherRows } from '../dist/index.js'

const first = Uint8Array.from({ length: 16 }, (_, i) => i + 1).buffer
const second = Uint8Array.from({ length: 8 }, (_, i) => i + 101).buffer

function words(...values: number[]): Uint32Array {
  return Uint32Array.from(values)
}

describe('gatherRows', () => {
  it('puts rows below each other, filled with zeros', () => {
    const target = new Uint8Array(24).fill(0xee)
    gatherRows(target.buffer, 2, 8, 2, [first, second], words(1, 0), words(6, 0), words(2, 8))
    expect([...target.subarray(0, 10)]).toEqual([0xee, 0xee, 107, 108, 0, 0, 0, 0, 0, 0])
    expect([...target.subarray(10, 19)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 0xee])
  })

  it('packs rows when the stride is 0', () => {
    const target = new Uint8Array(6).fill(0xee)
    gatherRows(
      target.buffer,
      0,
      0,
      3,
      [first, second],
      words(0, 1, 0),
      words(0, 0, 15),
      words(2, 1, 1),
    )
    expect([...target]).toEqual([1, 2, 101, 16, 0xee, 0xee])
  })

  it.each([
    ['a source that is not there', [0, 8, 1, words(2), words(0), words(1)]],
    ['bytes past a source', [0, 8, 1, words(0), words(12), words(5)]],
    ['a row longer than the stride', [0, 8, 2, words(0, 0), words(0, 0), words(1, 9)]],
    [
      'more rows than the target holds',
      [0, 8, 4, words(0, 0, 0, 0), words(0, 0, 0, 0), words(1, 1, 1, 1)],
    ],
    ['packed rows past the target', [20, 0, 1, words(0), words(0), words(5)]],
    ['an offset past the target', [25, 8, 0, words(), words(), words()]],
    ['arrays shorter than rows', [0, 8, 2, words(0), words(0, 0), words(1, 1)]],
    ['a negative offset', [-1, 8, 1, words(0), words(0), words(1)]],
    ['a stride that is no whole number', [0, 0.5, 1, words(0), words(0), words(1)]],
    ['rows that are no number', [0, 8, Number.NaN, words(0), words(0), words(1)]],
  ] as [string, [number, number, number, Uint32Array, Uint32Array, Uint32Array]][])(
    'writes nothing for %s',
    (_, [offset, stride, rows, index, from, length]) => {
      const target = new Uint8Array(24).fill(0xee)
      expect(() =>
        gatherRows(target.buffer, offset, stride, rows, [first, second], index, from, length),
      ).toThrow(RangeError)
      expect(target.every((byte) => byte === 0xee)).toBe(true)
    },
  )

  it('refuses a detached target and things that are no buffers', () => {
    const detached = new ArrayBuffer(8)
    structuredClone(detached, { transfer: [detached] })
    const row = [words(0), words(0), words(1)] as const
    expect(() => gatherRows(detached, 0, 1, 1, [first], ...row)).toThrow(RangeError)
    const wrong = [new Uint8Array(8)] as unknown as ArrayBuffer[]
    expect(() => gatherRows(new ArrayBuffer(8), 0, 1, 1, wrong, ...row)).toThrow(TypeError)
  })
})
