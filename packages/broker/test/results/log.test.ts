// The result log and store: what is appended comes back by offset, whatever the sizes, and memory is
// bounded by what is unread plus maxKeptResultBytes.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type LogCursor, ResultLog, type ResultRecord } from '../../src/results/log.ts'
import { renderLine } from '../../src/results/render.ts'
import { ResultStore } from '../../src/results/store.ts'

const record = (change: Partial<ResultRecord> = {}): ResultRecord => ({
  status: 'completed',
  attempts: 1,
  truncatedTo: 0,
  encoding: 1,
  id: new TextEncoder().encode('id'),
  value: new Uint8Array(8),
  ...change,
})

const arbitraryRecord = fc.record({
  status: fc.constantFrom('completed', 'failed', 'expired', 'cancelled', 'quarantined'),
  attempts: fc.integer({ min: 0, max: 255 }),
  truncatedTo: fc.integer({ min: 0, max: 2 ** 31 }),
  encoding: fc.integer({ min: 0, max: 4 }),
  id: fc.uint8Array({ minLength: 1, maxLength: 512 }),
  value: fc.uint8Array({ maxLength: 20_000 }),
}) as fc.Arbitrary<ResultRecord>

describe('result log', () => {
  test('every record comes back from every offset (property)', () => {
    fc.assert(
      fc.property(fc.array(arbitraryRecord, { minLength: 1, maxLength: 40 }), (records) => {
        const log = new ResultLog()
        for (const each of records) log.append(each)
        for (let offset = 0; offset <= records.length; offset++) {
          const cursor = log.seek(offset)
          expect(cursor.offset).toBe(offset)
          expect(log.next(cursor)).toEqual(records[offset] ?? null)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('a value is 8-aligned in its buffer, so that a float32 row is read in place', () => {
    const log = new ResultLog()
    for (let i = 1; i < 20; i++) log.append(record({ id: new Uint8Array(i) }))
    const cursor = log.seek(0)
    for (let each = log.next(cursor); each !== null; each = log.next(cursor))
      expect(each.value.byteOffset % 8).toBe(0)
  })

  test('a record larger than a segment has a segment of its own', () => {
    const log = new ResultLog()
    log.append(record())
    log.append(record({ value: new Uint8Array(3_000_000).fill(9) }))
    log.append(record())
    const cursor = log.seek(1)
    expect(log.next(cursor)?.value).toHaveLength(3_000_000)
    expect(log.next(cursor)?.value).toHaveLength(8)
  })

  test('a cursor at the end sees what is appended later', () => {
    const log = new ResultLog()
    const cursor = log.seek(0)
    expect(log.next(cursor)).toBeNull()
    log.append(record())
    expect(log.next(cursor)).not.toBeNull()
    expect(cursor.offset).toBe(1)
  })

  test('bytes count as read once, by whichever reader comes first', () => {
    const log = new ResultLog()
    const bytes = log.append(record()) + log.append(record())
    const [first, second] = [log.seek(0), log.seek(0)]
    const read = (cursor: LogCursor) => {
      log.next(cursor)
      log.handOut(0, cursor)
      return log.markRead(cursor.bytePosition)
    }
    expect(read(first)).toBe(bytes / 2)
    expect(read(second)).toBe(0)
    expect(read(second)).toBe(bytes / 2)
    expect(log.unreadBytes).toBe(0)
  })

  test('what a reader skipped counts as unread until somebody was given it', () => {
    const log = new ResultLog()
    const bytes = log.append(record()) + log.append(record())
    const behind = log.seek(1)
    const startByte = behind.bytePosition
    expect(log.markRead(startByte)).toBe(0)
    log.next(behind)
    log.handOut(startByte, behind)
    expect(log.markRead(behind.bytePosition)).toBe(0)
    const whole = log.seek(0)
    while (log.next(whole) !== null);
    log.handOut(0, whole)
    expect(log.markRead(whole.bytePosition)).toBe(bytes)
  })
})

describe('result store', () => {
  test('read segments of all jobs share one bound; the oldest go first, unread ones never', () => {
    const store = new ResultStore(2 * 2 ** 20)
    const logs = [store.create(), store.create()]
    for (const log of logs)
      for (let i = 0; i < 4096; i++) log.append(record({ value: new Uint8Array(1000) }))
    const held = logs.map((log) => log.heldBytes)
    const cursor = logs[0].seek(0)
    while (logs[0].next(cursor) !== null);
    logs[0].handOut(0, cursor)
    logs[0].markRead(cursor.bytePosition)
    expect(logs[0].firstOffset).toBeGreaterThan(0)
    expect(logs[0].heldBytes).toBeLessThan(held[0])
    expect(logs[1].heldBytes).toBe(held[1])
    expect(logs[0].isDropped({ ...cursor, offset: 0 })).toBe(true)
    expect(logs[0].seek(logs[0].firstOffset).offset).toBe(logs[0].firstOffset)
  })

  test('keeping nothing, a segment goes when it is read, and a cursor at its end goes on', () => {
    const log = new ResultStore(0).create()
    const cursor = log.seek(0)
    let held = 0
    for (let i = 0; i < 2000; i++) {
      log.append(record())
      log.next(cursor)
      log.handOut(0, cursor)
      log.markRead(cursor.bytePosition)
      held = Math.max(held, log.heldBytes)
    }
    expect(cursor.offset).toBe(2000)
    // Only the segment that is being filled: each is twice the one before.
    expect(held).toBe(log.heldBytes)
  })
})

describe('result lines', () => {
  const line = (change: Partial<ResultRecord>, encoding: 'float' | 'base64' = 'float') =>
    JSON.parse(renderLine(7, record(change), encoding))
  const json = (value: string) => ({ encoding: 3, value: new TextEncoder().encode(value) })
  const row = (values: number[]) => ({
    encoding: 2,
    value: new Uint8Array(new Float32Array(values).buffer),
  })

  test('a row is numbers in full precision, or base64', () => {
    expect(line(row([0.5, -1.25])).result).toEqual([0.5, -1.25])
    expect(line(row([0.1])).result.map(Math.fround)).toEqual([Math.fround(0.1)])
    expect(line(row([1]), 'base64').result).toEqual({ dtype: 'float32', base64: 'AACAPw==' })
  })

  test('what JSON cannot say is null', () => {
    expect(line(row([Number.NaN, Number.POSITIVE_INFINITY, 1])).result).toEqual([null, null, 1])
  })

  test('JSON of a consumer is parsed: it cannot forge a line', () => {
    expect(line(json('{"label":\n "x"}')).result).toEqual({ label: 'x' })
    expect(
      renderLine(0, record(json('1}\n{"offset":9')), 'float')
        .trim()
        .split('\n'),
    ).toHaveLength(1)
    expect(line(json('not json')).result.dtype).toBe('bytes')
  })

  test('an error keeps a known code; an unknown one becomes FABRIC_ITEM_FAILED', () => {
    const error = (body: string) => line({ ...json(body), encoding: 4, status: 'failed' }).error
    expect(error('{"code":"FABRIC_INPUT_TOO_LONG","message":"m"}')).toEqual({
      code: 'FABRIC_INPUT_TOO_LONG',
      message: 'm',
    })
    expect(error('{"code":"toString","message":"m"}').code).toBe('FABRIC_ITEM_FAILED')
    expect(error('plain words')).toEqual({ code: 'FABRIC_ITEM_FAILED', message: 'plain words' })
  })

  test('truncation is told, and an id is any text', () => {
    const id = new TextEncoder().encode('a"\n\\é')
    expect(line({ truncatedTo: 5, id })).toMatchObject({ offset: 7, id: 'a"\n\\é', truncatedTo: 5 })
  })
})
