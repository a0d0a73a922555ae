import { describe, expect, test } from 'vitest'
import { applyInputLength, type InputLengthPolicy } from '../src/batches/input-length.js'
import { count, viewOf } from './support/batches.js'

const policy = (
  inputLength: number,
  change: Partial<InputLengthPolicy> = {},
): InputLengthPolicy => ({
  inputLength,
  overlength: 'truncate',
  keepLastToken: false,
  ...change,
})

describe('input length', () => {
  test('a batch that fits is passed on in place, without a copy', () => {
    const view = viewOf({ items: [{ tokens: count(8) }, { tokens: [1] }] })
    const rows = applyInputLength(view, policy(8))
    expect(rows.inputIds).toBe(view.inputIds)
    expect(rows.lengths).toBe(view.lengths)
  })

  test('a long row keeps its first tokens; rows that fit stay whole', () => {
    const view = viewOf({ items: [{ tokens: count(12) }, { tokens: [7, 8] }] })
    const rows = applyInputLength(view, policy(4))
    expect(rows.paddedLength).toBe(4)
    expect(Array.from(rows.inputIds)).toEqual([1, 2, 3, 4, 7, 8, 0, 0])
    expect(Array.from(rows.lengths)).toEqual([4, 2])
    expect(Array.from(rows.truncatedTo)).toEqual([4, 0])
    expect(rows.tokenCount).toBe(6)
    expect(view.inputIds.length).toBe(32)
  })

  test('with keepLastToken a cut row ends as it did, and no other row changes', () => {
    const view = viewOf({ items: [{ tokens: [101, 1, 2, 3, 102] }, { tokens: [101, 102] }] })
    const rows = applyInputLength(view, policy(3, { keepLastToken: true }))
    expect(Array.from(rows.inputIds)).toEqual([101, 1, 102, 101, 102, 0])
  })

  test('a ragged batch is cut row by row', () => {
    const view = viewOf({
      layout: 'ragged',
      items: [{ tokens: [1, 2] }, { tokens: count(5) }, { tokens: [9] }],
    })
    const rows = applyInputLength(view, policy(3, { keepLastToken: true }))
    expect(Array.from(rows.inputIds)).toEqual([1, 2, 1, 2, 5, 9])
    expect(Array.from(rows.lengths)).toEqual([2, 3, 1])
    expect(Array.from(rows.truncatedTo)).toEqual([0, 3, 0])
  })

  test('padding beyond the input length is taken off, though every row fits', () => {
    const view = viewOf({ items: [{ tokens: count(10) }, { tokens: [7] }] })
    expect(view.paddedLength).toBe(16)
    const rows = applyInputLength(view, policy(10))
    expect(rows.paddedLength).toBe(10)
    expect(Array.from(rows.inputIds)).toEqual([...count(10), 7, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    expect(Array.from(rows.truncatedTo)).toEqual([0, 0])
  })

  test('under `fail` long rows are left out, by their places', () => {
    const view = viewOf({ items: [{ tokens: count(12) }, { tokens: [7, 8] }] })
    const rows = applyInputLength(view, policy(4, { overlength: 'fail' }))
    expect(rows.tooLong).toEqual([0])
    expect(rows.size).toBe(1)
    expect(Array.from(rows.origin)).toEqual([1])
    expect(Array.from(rows.inputIds)).toEqual([7, 8, 0, 0])
  })

  test('an item with opaque bytes is never said to be cut', () => {
    const view = viewOf({
      items: [
        { tokens: count(12), payload: 'bytes' },
        { tokens: count(12), payload: '' },
      ],
    })
    const rows = applyInputLength(view, policy(4))
    expect(Array.from(rows.truncatedTo)).toEqual([0, 4])
  })
})
