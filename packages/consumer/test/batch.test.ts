// Settlement of a batch, item by item, without any connection.
import { Encoding, type ItemResult, Outcome } from '@fabric/protocol'
import { describe, expect, test } from 'vitest'
import { Batch } from '../src/batches/batch.js'
import type { InputLengthPolicy } from '../src/batches/input-length.js'
import { type BatchResults, ItemError } from '../src/batches/results.js'
import { count, type TestBatch, viewOf } from './support/batches.js'

const POLICY: InputLengthPolicy = { inputLength: 64, overlength: 'truncate', keepLastToken: false }
const THREE = [{ tokens: [1] }, { tokens: [2] }, { tokens: [3] }]

function open(test: TestBatch = { items: THREE }, policy = POLICY) {
  const messages: ItemResult[][] = []
  let doneTimes = 0
  const batch = new Batch(viewOf(test), policy, {
    send: (results) => messages.push(results.map((r) => ({ ...r, value: r.value.slice() }))),
    done: () => {
      doneTimes += 1
    },
  })
  return { batch, messages, sent: () => messages.flat(), done: () => doneTimes }
}

const errorOf = (result: ItemResult) => JSON.parse(new TextDecoder().decode(result.value))
const turn = () => new Promise<void>((resolve) => queueMicrotask(resolve))

describe('batch', () => {
  test('is done with the last item, once, and what came one by one in a turn is one message', async () => {
    const { batch, messages, done } = open()
    batch.ackItem(1, 'b')
    batch.fail(0, 'no')
    expect([batch.isItemSettled(0), batch.isItemSettled(2), batch.settled]).toEqual([
      true,
      false,
      false,
    ])
    await turn()
    expect(messages.map((m) => m.map(({ index }) => index))).toEqual([[1, 0]])
    expect(done()).toBe(0)
    batch.ackItem(2, 'c')
    expect(done()).toBe(1)
    await turn()
    expect(messages.length).toBe(2)
    expect(done()).toBe(1)
  })

  test('ack leaves alone what was settled before', () => {
    const { batch, sent, done } = open()
    batch.fail(1, 'bad')
    batch.ack(['a', 'ignored', 'c'])
    expect(sent().map(({ index, outcome }) => [index, outcome])).toEqual([
      [1, Outcome.failed],
      [0, Outcome.completed],
      [2, Outcome.completed],
    ])
    expect(done()).toBe(1)
  })

  test('an item is settled once, and only if it is in the batch', () => {
    const { batch } = open()
    batch.ackItem(0, 'a')
    expect(() => batch.ackItem(0, 'again')).toThrow('settled already')
    expect(() => batch.fail(3, 'who')).toThrow('has no item 3')
    expect(() => batch.fail(-1, 'who')).toThrow('has no item -1')
    expect(() => batch.ackItem(Number.NaN, 'who')).toThrow('has no item NaN')
  })

  test('a buffer given to ackItem may be used for the next item', () => {
    const { batch, sent } = open()
    const scratch = new Float32Array(2)
    for (let i = 0; i < 3; i++) batch.ackItem(i, scratch.fill(i))
    const rows = sent().map(({ value }) => Array.from(new Float32Array(value.buffer)))
    expect(rows).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
    ])
  })

  test('one Float32Array holds the rows of all items', () => {
    const { batch, sent } = open()
    batch.ack(new Float32Array([1, 2, 3, 4, 5, 6]))
    expect(sent().map(({ encoding }) => encoding)).toEqual(Array(3).fill(Encoding.float32))
    expect(sent().map(({ value }) => Array.from(new Float32Array(value.buffer)))).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ])
  })

  test('bytes, JSON and null are results; a value with truncatedTo says so', () => {
    const { batch, sent } = open()
    batch.ack([new Uint8Array([7]), null, { value: { score: 1 }, truncatedTo: 12 }])
    const [bytes, nothing, cut] = sent()
    expect(bytes).toMatchObject({ encoding: Encoding.bytes, value: new Uint8Array([7]) })
    expect(new TextDecoder().decode(nothing.value)).toBe('null')
    expect(cut).toMatchObject({ encoding: Encoding.json, truncatedTo: 12 })
    expect(errorOf(cut)).toEqual({ score: 1 })
  })

  test('JSON that holds more than a value and truncatedTo is itself the result', () => {
    const { batch, sent } = open({ items: [{ tokens: [1] }] })
    batch.ack([{ value: 1, truncatedTo: 2, more: 3 }])
    expect(sent()[0].truncatedTo).toBe(0)
    expect(errorOf(sent()[0])).toEqual({ value: 1, truncatedTo: 2, more: 3 })
  })

  test.each([
    [undefined, 'undefined was returned'],
    ['text', 'a string was returned'],
    [{ a: 1 }, 'an object of class Object was returned'],
    [[1, 2], '3 results were expected, one per item, and 2 returned'],
    [new Float32Array(4), '3 rows of equal width was expected, and one of length 4'],
    [new Float32Array(0), '3 rows of equal width'],
    [new Float64Array(3), 'an object of class Float64Array was returned'],
  ])('results of the wrong kind (%s) fail every item and say why', (results, why) => {
    const { batch, sent, done } = open()
    batch.ack(results as BatchResults)
    expect(sent().map(({ outcome }) => outcome)).toEqual(Array(3).fill(Outcome.failed))
    expect(errorOf(sent()[0]).code).toBe('FABRIC_RESULT_MALFORMED')
    expect(errorOf(sent()[0]).message).toContain(why)
    expect(done()).toBe(1)
  })

  test.each([
    [undefined, 'undefined is no JSON value'],
    [() => 1, 'a function is no JSON value'],
    [Number.NaN, 'NaN is no JSON value'],
    [10n, 'BigInt'],
    [new Float64Array(2), 'Float64Array is no result'],
    [new ArrayBuffer(2), 'ArrayBuffer is no result'],
  ])('one result of the wrong kind (%s) fails its item and no neighbour', (result, why) => {
    const { batch, sent } = open()
    batch.ack(['fine', result, 'fine'] as BatchResults)
    expect(sent().map(({ outcome }) => outcome)).toEqual([
      Outcome.completed,
      Outcome.failed,
      Outcome.completed,
    ])
    expect(errorOf(sent()[1]).code).toBe('FABRIC_RESULT_MALFORMED')
    expect(errorOf(sent()[1]).message).toContain(why)
  })

  test('an ItemError among the results fails its item, for good or for another try', () => {
    const { batch, sent } = open()
    batch.ack([new ItemError('bad'), new ItemError('busy', { retry: true }), 1])
    expect(sent().map(({ outcome }) => outcome)).toEqual([
      Outcome.failed,
      Outcome.retry,
      Outcome.completed,
    ])
  })

  test('what fails as too long is not among the rows, and results find their places', async () => {
    const { batch, sent } = open(
      {
        items: [{ tokens: count(70) }, { tokens: [1, 2] }, { tokens: count(99) }, { tokens: [3] }],
      },
      { ...POLICY, overlength: 'fail' },
    )
    expect(batch.size).toBe(2)
    expect(batch.itemIds).toEqual(['item-1', 'item-3'])
    batch.ack(['b', 'd'])
    await turn()
    expect(sent().map(({ index, outcome }) => [index, outcome])).toEqual([
      [0, Outcome.failed],
      [2, Outcome.failed],
      [1, Outcome.completed],
      [3, Outcome.completed],
    ])
    expect(errorOf(sent()[0])).toEqual({
      code: 'FABRIC_INPUT_TOO_LONG',
      message: 'the item has 70 tokens, the input length is 64',
    })
  })
})
