// The fast way of reading a line against the general one: what the fast way takes is what JSON.parse
// says, and what it does not take is left to the general way.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ItemColumns } from '../../src/http/columns.ts'
import { readPlainLine } from '../../src/http/plain-line.ts'

function read(line: string) {
  const columns = new ItemColumns()
  const body = Buffer.from(`xx${line}yy`)
  const item = readPlainLine(body, 2, body.length - 2, columns)
  if (item === null) return null
  columns.pushTokens(item.id, item.model ?? 0, item.length)
  return { ...item, tokens: Array.from(columns.block(0).tokens) }
}

const token = fc.integer({ min: 0, max: 2 ** 31 - 1 })
const plainId = fc
  .string({ minLength: 1, maxLength: 512, unit: 'grapheme-ascii' })
  .filter((id) => !/["\\]/.test(id))
const plainItem = fc.record(
  { id: plainId, tokens: fc.array(token, { minLength: 1 }), model: token },
  { requiredKeys: ['id', 'tokens'] },
)

describe('plain line', () => {
  test('every plain item is read as JSON.parse reads it, however it is spaced (property)', () => {
    fc.assert(
      fc.property(plainItem, fc.constantFrom('', ' ', '\t', ' \r'), (item, space) => {
        const spaced = JSON.stringify(item, null, 1).replace(/\n */g, space)
        expect(read(spaced)).toEqual({
          id: item.id,
          model: item.model ?? null,
          length: item.tokens.length,
          tokens: item.tokens,
        })
      }),
      { numRuns: 300 },
    )
  })

  test('what it takes of any JSON is what JSON.parse says (property)', () => {
    const anything = fc.oneof(
      fc.json(),
      plainItem.map((item) => JSON.stringify(item)),
    )
    const mutated = fc
      .tuple(anything, fc.nat(), fc.string({ maxLength: 2 }))
      .map(([json, where, insert]) => {
        const at = where % (json.length + 1)
        return json.slice(0, at) + insert + json.slice(at)
      })
    fc.assert(
      fc.property(fc.oneof(anything, mutated), (line) => {
        const item = read(line)
        if (item === null) return
        const parsed = JSON.parse(line)
        expect(item).toMatchObject({ id: parsed.id, tokens: parsed.tokens })
        expect(item.model).toBe(parsed.model ?? null)
      }),
      { numRuns: 3000 },
    )
  })

  test.each([
    ['{"id":"a","tokens":[]}'],
    ['{"id":"","tokens":[1]}'],
    ['{"id":"a","tokens":[01]}'],
    ['{"id":"a","tokens":[-1]}'],
    ['{"id":"a","tokens":[1.0]}'],
    ['{"id":"a","tokens":[2147483648]}'],
    ['{"id":"a","tokens":[99999999999999999999]}'],
    ['{"id":"a","tokens":[1,]}'],
    ['{"id":"a","tokens":[1]'],
    ['{"id":"a","tokens":[1]}}'],
    ['{"id":"a","id":"b","tokens":[1]}'],
    ['{"id":"a","tokens":[1],"job":"j"}'],
    ['{"id":"\\u0061","tokens":[1]}'],
    ['{"id":"é","tokens":[1]}'],
    ['{"tokens":[1]}'],
    ['{"id":"a"}'],
    ['{}'],
    ['[]'],
    [''],
  ])('%s is left to the general way', (line) => {
    expect(read(line)).toBeNull()
  })
})
