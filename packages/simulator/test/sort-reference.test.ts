// The sorted set under both budget rules (S17, S18), packed by hand.
import type { Contract } from '@fabric/core'
import { expect, it } from 'vitest'
import { parseScenario } from '../src/index.js'
import { Lengths, sortReference } from '../src/report/sort-reference.js'

function sorted(lengths: readonly number[], config: object, contract: Partial<Contract>) {
  const set = new Lengths()
  for (const length of lengths) set.add(1, length)
  const whole: Contract = {
    batchSize: 4,
    tokens: 32,
    inputLength: 64,
    model: 1,
    layout: 'padded',
    roundTo: 8,
    maxInFlight: 1,
    ...contract,
  }
  const { rules } = parseScenario(JSON.stringify({ config }))
  const { batches, actualTokens, paddedTokens, fills } = sortReference(
    set,
    new Map([[1, whole]]),
    rules,
  )
  return { batches, actualTokens, paddedTokens, fills: fills.entries() }
}

it('sort: longest first, as many as the padded budget holds', () => {
  // 16 9 | 8 8 7 3 | 1
  expect(sorted([1, 8, 16, 3, 8, 9, 7], {}, {})).toEqual({
    batches: 3,
    actualTokens: 52,
    paddedTokens: 32 + 32 + 8,
    fills: [
      [0.25, 1],
      [1, 2],
    ],
  })
})

it('sort: the item limit closes too, and an item over the budget goes alone', () => {
  // 40 | 8 8 | 8
  expect(sorted([8, 40, 8, 8], {}, { batchSize: 2 })).toMatchObject({
    batches: 3,
    paddedTokens: 64,
  })
})

it('sort: under the actual rule lengths are summed, and a ragged batch has no padding', () => {
  // 16 9 7 | 8 would not fit before 7: it closes. 16 9 | 8 8 7 3 1
  const ragged = sorted(
    [1, 8, 16, 3, 8, 9, 7],
    { budgetRule: 'actual' },
    { layout: 'ragged', batchSize: 8 },
  )
  expect(ragged).toMatchObject({ batches: 2, paddedTokens: 52 })
  expect(ragged.fills).toEqual([
    [25 / 32, 1],
    [27 / 32, 1],
  ])
})

it('sort: under the actual rule a padded batch stays within 1.25 x its tokens', () => {
  // 5 x 8 is 40 = 1.25 x 32; the sum of 5 x 6 is 30.
  expect(sorted(Array(10).fill(6), { budgetRule: 'actual' }, { batchSize: 8 })).toMatchObject({
    batches: 2,
    paddedTokens: 80,
  })
})
