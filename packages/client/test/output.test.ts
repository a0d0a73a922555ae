// The parts of an output file: numbers, records, the index of ids, the order.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { floatRowJson } from '../src/output/float-row.js'
import { IdIndex } from '../src/output/id-index.js'
import { LineFile } from '../src/output/line-file.js'
import { OrderedFile } from '../src/output/ordered-file.js'
import { failedRecord, resultRecord } from '../src/output/record.js'
import { temporaryFolder } from './support/texts.js'

describe('float32 rows', () => {
  const back = (row: Float32Array) => Float32Array.from(JSON.parse(floatRowJson(row)))

  it('read back as the same float32, whatever their bits', () => {
    const bits = fc.uint32Array({ minLength: 0, maxLength: 50 })
    fc.assert(
      fc.property(bits, (words) => {
        const row = new Float32Array(words.buffer.slice(0)).map((x) => (Number.isFinite(x) ? x : 0))
        expect(back(row)).toEqual(row.map((x) => x + 0)) // -0 becomes 0, as JSON has it
      }),
      { numRuns: 3000 },
    )
  })

  it('read back as the same float32 for the values embeddings have', () => {
    const value = fc.float({ min: -1, max: 1, noNaN: true })
    fc.assert(
      fc.property(fc.array(value, { maxLength: 400 }), (values) => {
        const row = Float32Array.from(values)
        expect(back(row)).toEqual(row.map((x) => x + 0))
      }),
    )
  })

  it('take no more digits than they need', () => {
    const row = Float32Array.of(0, 1, -2.5, 0.1, 1234567, 0.5e-3, 1e-10, 3e20, 999999936)
    expect(floatRowJson(row)).toBe(
      '[0,1,-2.5,0.100000001,1234567,0.000500000024,1.000000013351432e-10,300000006012263200000,999999936]',
    )
    expect(floatRowJson(new Float32Array(0))).toBe('[]')
    expect(floatRowJson(Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY))).toBe('[null,null]')
  })

  it('may be longer than any before', () => {
    const row = new Float32Array(100_000).fill(-0.123456789)
    expect(back(row)).toEqual(row)
  })
})

describe('records', () => {
  it('hold what is known and nothing else', () => {
    const result = { id: 'a"b', status: 'completed', attempts: 1, offset: 3 } as const
    expect(resultRecord({ ...result, result: Float32Array.of(0.5), truncatedTo: 4 })).toBe(
      '{"id":"a\\"b","status":"completed","result":[0.5],"attempts":1,"truncatedTo":4}\n',
    )
    expect(resultRecord({ ...result, result: Uint8Array.of(0, 255) })).toContain(
      '"result":{"dtype":"bytes","base64":"AP8="}',
    )
    expect(resultRecord({ ...result, result: null })).toContain('"result":null')
    expect(resultRecord(result)).not.toContain('"result"')
    const error = { code: 'FABRIC_INPUT', message: 'no', line: 7 } as const
    expect(JSON.parse(failedRecord('x', error))).toEqual({
      id: 'x',
      status: 'failed',
      attempts: 0,
      error,
    })
  })
})

describe('id index', () => {
  it('finds the place of every id, and the first place of an id that comes again', () => {
    const index = new IdIndex()
    const count = 200_000
    let known = 0
    for (let place = 0; place < count; place++) if (index.add(`doc-${place}`, place) >= 0) known++
    expect(known).toBe(0)
    expect(index.add('doc-7', count)).toBe(7)
    expect(index.size).toBe(count)
    for (let place = 0; place < count; place += 97) expect(index.get(`doc-${place}`)).toBe(place)
    expect(index.get('doc-200000')).toBe(-1)
  })
})

describe('line file', () => {
  it('writes lines of any length in order, and knows its length', () => {
    const path = join(temporaryFolder(), 'out')
    const file = new LineFile(path)
    const lines = ['a\n', `${'€'.repeat(300_000)}\n`, 'b\n', `${'x'.repeat(262_143)}\n`, 'c\n']
    const bytes = lines.map((line) => file.append(line))
    expect(file.bytes).toBe(bytes.reduce((sum, n) => sum + n))
    file.close()
    expect(readFileSync(path, 'utf8')).toBe(lines.join(''))
  })

  it('cannot be opened where there is no folder', () => {
    expect(() => new LineFile('/nonexistent/out')).toThrow(
      expect.objectContaining({
        field: 'output',
        message: expect.stringContaining('/nonexistent'),
      }),
    )
  })
})

describe('ordered file', () => {
  const write = (places: readonly number[], record: (place: number) => string) => {
    const path = join(temporaryFolder(), 'out')
    const file = new OrderedFile(path)
    for (const place of places) file.append(place, record(place))
    return { file, path }
  }

  it('has its records in the order of their places, gaps left out', () => {
    const places = fc.uniqueArray(fc.integer({ min: 0, max: 70_000 }), { maxLength: 60 })
    fc.assert(
      fc.property(places, (order) => {
        const { file, path } = write(order, (place) => `${place} ${'x'.repeat(place % 50)}\n`)
        file.finish()
        const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
        const found = lines.map((line) => Number(line.split(' ')[0]))
        expect(found).toEqual([...order].sort((a, b) => a - b))
        expect(existsSync(file.spoolPath)).toBe(false)
      }),
      { numRuns: 60 },
    )
  })

  it('gathers more than fits in memory at a time', () => {
    const count = 20_000
    const places = Array.from({ length: count }, (_, i) => (i * 7919) % count)
    const { file, path } = write(places, (place) => `${String(place).padStart(1000)}\n`)
    file.finish()
    const lines = readFileSync(path, 'utf8').split('\n')
    expect(lines.slice(0, -1).every((line, i) => Number(line) === i)).toBe(true)
    expect(lines).toHaveLength(count + 1)
  })

  it('takes the first record of a place, and keeps all as they came when broken off', () => {
    const { file, path } = write([2, 0], (place) => `${place}\n`)
    expect([file.append(2, 'again\n'), file.append(1, '1\n')]).toEqual([false, true])
    expect(file.keep()).toBe(`${path}.partial`)
    expect(readFileSync(`${path}.partial`, 'utf8')).toBe('2\n0\n1\n')
    expect(existsSync(path)).toBe(false)
  })
})
