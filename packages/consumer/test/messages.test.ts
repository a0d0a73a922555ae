import { decodeResults, Outcome } from '@fabric/protocol'
import { expect, test } from 'vitest'
import { resultsBodies } from '../src/batches/messages.js'
import { completedOrFailed } from '../src/batches/results.js'

const result = (index: number, bytes: number) =>
  completedOrFailed(index, new Uint8Array(bytes).fill(index), 0)
const open = (sizes: readonly number[], bytesMax?: number) =>
  resultsBodies(
    7,
    9n,
    sizes.map((bytes, index) => result(index, bytes)),
    bytesMax,
  ).map(decodeResults)

test('results: a batch is one message as long as that fits', () => {
  const [message, ...others] = open([10, 0, 20])
  expect(others).toEqual([])
  expect(message).toMatchObject({ batch: 7, brokerLife: 9n, count: 3 })
  expect(Array.from(message.value(2))).toEqual(Array(20).fill(2))
})

test('results: what does not fit one message is cut between items, and nothing is lost', () => {
  const messages = open([100, 100, 100, 10, 10], 300)
  expect(messages.map(({ index }) => Array.from(index))).toEqual([
    [0, 1],
    [2, 3, 4],
  ])
  expect(messages.flatMap((m) => Array.from(m.outcome))).toEqual(Array(5).fill(Outcome.completed))
})

test('results: one that no message can hold fails its item and no neighbour', () => {
  const [message] = open([10, 1000, 10], 300)
  expect(Array.from(message.outcome)).toEqual([
    Outcome.completed,
    Outcome.failed,
    Outcome.completed,
  ])
  expect(JSON.parse(new TextDecoder().decode(message.value(1)))).toMatchObject({
    code: 'FABRIC_TOO_LARGE',
  })
})
