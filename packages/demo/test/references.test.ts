import { expect, test } from 'vitest'
import { packFirstCome, packSorted } from '../src/references.js'

const contract = { batchSize: 4, tokens: 64, roundTo: 8 }

test('first-come batching pads every item to the longest that happened to come along', () => {
  // 30 pads to 32: two fit 64 tokens, so (3, 30) and (3, 30): 66 actual of 128 padded.
  expect(packFirstCome([3, 30, 3, 30], contract)).toEqual({ batches: 2, waste: 1 - 66 / 128 })
})

test('sorting first puts like with like', () => {
  expect(packSorted([3, 30, 3, 30], contract)).toEqual({ batches: 2, waste: 1 - 66 / 80 })
})

test('the item limit closes a batch that the budget would let grow', () => {
  expect(packFirstCome([8, 8, 8, 8, 8], contract).batches).toBe(2)
})

test('no items are no batches and no waste', () => {
  expect(packSorted([], contract)).toEqual({ batches: 0, waste: 0 })
})
