import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { crc32RowsInScript } from '../dist/checksum-in-script.js'
import { crc32Rows, ringSupport } from '../dist/index.js'

const CRC_OF_CHECK_STRING = 0xcbf43926
const checkString = new TextEncoder().encode('123456789')

/** What is left of the CRCs, or the error's class and text. */
function outcome(
  checksum: typeof crc32Rows,
  source: Uint8Array,
  rows: number,
  columns: number[][],
) {
  const [offset, length, before] = columns.map((column) => Uint32Array.from(column))
  const crcs = before!.slice()
  try {
    checksum(source, offset!, length!, crcs, rows)
  } catch (error) {
    const { name, message } = error as Error
    // The two sides word a number that is none differently.
    return { name, message: /whole/.test(message) ? '' : message, crcs }
  }
  return { crcs }
}

describe.each([
  ['the addon', crc32Rows],
  ['a script', crc32RowsInScript],
])('crc32Rows by %s', (_, checksum) => {
  it('goes on from the CRC of what stands before a row', () => {
    const crcs = Uint32Array.of(0, crc32(checkString.subarray(0, 4)), 5)
    checksum(checkString, Uint32Array.of(0, 4, 9), Uint32Array.of(9, 5, 0), crcs, 3)
    expect([...crcs]).toEqual([CRC_OF_CHECK_STRING, CRC_OF_CHECK_STRING, 5])
  })

  it('reads memory that threads share', () => {
    const shared = new Uint8Array(new SharedArrayBuffer(16), 3, 9)
    shared.set(checkString)
    const crcs = Uint32Array.of(0)
    checksum(shared, Uint32Array.of(0), Uint32Array.of(9), crcs, 1)
    expect(crcs[0]).toBe(CRC_OF_CHECK_STRING)
  })

  it.each([-1, 0.5, Number.NaN])('refuses %s rows', (rows) => {
    const { name, crcs } = outcome(checksum, checkString, rows, [[0], [1], [7]])
    expect(name).toMatch(/RangeError|TypeError/)
    expect([...crcs]).toEqual([7])
  })
})

it('the addon and the script leave the same CRCs and the same errors for 3000 drawn calls', () => {
  expect(ringSupport()).toEqual({ supported: true, reason: '' })
  let seed = 11
  const draw = (below: number) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return (seed >>> 8) % below
  }
  const source = Uint8Array.from({ length: 400 }, () => draw(256))
  let refused = 0
  for (let call = 0; call < 3000; call++) {
    const rows = draw(5)
    const column = (below: number) => Array.from({ length: rows }, () => draw(below))
    const columns = [column(draw(4) === 0 ? 402 : 200), column(201), column(2 ** 24)]
    const asked = draw(20) === 0 ? rows + 1 : rows
    const expected = outcome(crc32Rows, source, asked, columns)
    if ('message' in expected) refused += 1
    expect(outcome(crc32RowsInScript, source, asked, columns)).toEqual(expected)
  }
  expect(refused).toBeGreaterThan(300)
  expect(refused).toBeLessThan(2700)
})
