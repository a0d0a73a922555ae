// Reading: lines of files, their count, order of concurrent work.
import { describe, expect, it } from 'vitest'
import { countLines, readLines } from '../src/input/lines.js'
import { mapOrdered } from '../src/input/ordered.js'
import { isBad, parseLine } from '../src/input/parse.js'
import { temporaryFolder, writeFile } from './support/texts.js'

const file = (content: string) => writeFile(temporaryFolder(), 'in.jsonl', content)

async function linesOf(path: string) {
  const lines = []
  for await (const block of readLines(path)) lines.push(...block)
  return lines
}

describe('input lines', () => {
  it('are numbered as an editor numbers them; blank ones are left out', async () => {
    const path = file('\ufeffa\n\n  \nb\r\n\nc')
    expect(await linesOf(path)).toEqual([
      { number: 1, text: 'a' },
      { number: 4, text: 'b\r' },
      { number: 6, text: 'c' },
    ])
    expect(await countLines(path)).toBe(3)
  })

  it.each([
    ['', 0],
    ['\n', 0],
    [' \r\n\t\n', 0],
    ['a', 1],
    ['a\n', 1],
    ['a\nb', 2],
    [`${'x'.repeat(3 << 20)}\n\ny\n`, 2],
    [`${' '.repeat((1 << 20) - 1)}\nz\n`, 1],
  ])('are counted without reading them as text (case %#)', async (content, count) => {
    expect(await countLines(file(content))).toBe(count)
    expect(await linesOf(file(content))).toHaveLength(count)
  })

  it('of a file that is missing are FABRIC_INPUT', async () => {
    await expect(linesOf('/nonexistent')).rejects.toMatchObject({ code: 'FABRIC_INPUT' })
    await expect(countLines('/nonexistent')).rejects.toMatchObject({ code: 'FABRIC_INPUT' })
  })
})

describe('a line', () => {
  const options = { textField: 'text', idField: 'id' }
  const parse = (text: string | null) => parseLine({ number: 9, text }, 4, options)

  it('is an item with its line number as id, unless it has one', () => {
    expect(parse('{"text":"a","title":"ignored"}')).toEqual({
      line: 9,
      position: 4,
      id: '9',
      text: 'a',
    })
    expect(parse('{"id":"x","tokens":[1],"text":"not used"}')).toMatchObject({
      id: 'x',
      tokens: [1],
    })
    expect(parse('{"id":null,"payload":"AA==","length":3}')).toMatchObject({ id: '9', length: 3 })
  })

  it('that is too long to hold is a bad line', () => {
    const line = parse(null)
    expect(isBad(line) && line.error).toMatchObject({ code: 'FABRIC_INPUT', line: 9 })
  })
})

describe('ordered work', () => {
  it('gives results in the order of the input, at most so many at once', async () => {
    let open = 0
    let most = 0
    async function* source() {
      for (let i = 0; i < 20; i++) yield i
    }
    const results = []
    const work = async (value: number) => {
      most = Math.max(most, ++open)
      for (let i = 0; i < 20 - value; i++) await Promise.resolve()
      open -= 1
      return value
    }
    for await (const result of mapOrdered(source(), 4, work)) results.push(result)
    expect(results).toEqual(Array.from({ length: 20 }, (_, i) => i))
    expect(most).toBe(4)
  })

  it('ends with the first failure', async () => {
    async function* source() {
      yield 1
      yield 2
    }
    const results = mapOrdered(source(), 2, async (value) => {
      if (value === 1) throw new Error('no')
    })
    await expect(results.next()).rejects.toThrow('no')
  })
})
