import { describe, expect, test } from 'vitest'
import {
  type BatchShape,
  FabricError,
  openBatch,
  planBatch,
  writeBatchHeader,
} from '../src/index.js'

const header = { batch: 2 ** 40 + 3, brokerLife: 0xdeadbeefcafef00dn, model: 7, attempt: 2 }

/** A batch laid out by hand, the way the broker's assembly does it. */
function layOut(shape: BatchShape, rows: number[][], ids: string[], payloads?: string[], at = 64) {
  const plan = planBatch(shape)
  const buffer = new ArrayBuffer(at + plan.totalBytes)
  writeBatchHeader(buffer, at, header, plan)
  new Int32Array(buffer, at + plan.lengthsAt, rows.length).set(rows.map((row) => row.length))
  const inputIds = new Int32Array(buffer, at + plan.inputIdsAt)
  let ragged = 0
  rows.forEach((row, i) => {
    inputIds.set(row, shape.layout === 'padded' ? i * shape.paddedLength : ragged)
    ragged += row.length
  })
  const strings = (values: string[], endsAt: number) => {
    let end = 0
    values.forEach((value, i) => {
      const encoded = Buffer.from(value)
      new Uint8Array(buffer, at + endsAt + 4 * values.length + end).set(encoded)
      end += encoded.byteLength
      new Uint32Array(buffer, at + endsAt, values.length)[i] = end
    })
  }
  strings(ids, plan.idEndsAt)
  if (payloads) strings(payloads, plan.payloadEndsAt)
  return { buffer, plan, at }
}

const shape: BatchShape = {
  layout: 'padded',
  size: 3,
  paddedLength: 8,
  actualTokens: 6,
  idBytes: 6,
  payloadBytes: null,
}
const rows = [[1, 2, 3], [4], [5, 6]]
const ids = ['a', 'bcd', 'é']

describe('the batch format', () => {
  test('a padded batch is read in place, row by row', () => {
    const { buffer, plan, at } = layOut(shape, rows, ids)
    const batch = openBatch(buffer, at, plan.totalBytes)
    expect(batch).toMatchObject({
      ...header,
      layout: 'padded',
      size: 3,
      paddedLength: 8,
      tokenCount: 6,
    })
    expect([...batch.lengths]).toEqual([3, 1, 2])
    expect([...batch.inputIds.subarray(8, 16)]).toEqual([4, 0, 0, 0, 0, 0, 0, 0])
    expect([...batch.idEnds]).toEqual([1, 4, 6])
    expect(new TextDecoder().decode(batch.ids)).toBe('abcdé')
    expect(batch.inputIds.buffer).toBe(buffer)
    expect(batch.payloads).toBeNull()
  })

  test('a ragged batch holds no padding', () => {
    const { buffer, plan, at } = layOut({ ...shape, layout: 'ragged', paddedLength: 0 }, rows, ids)
    expect([...openBatch(buffer, at, plan.totalBytes).inputIds]).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('payloads stand behind the ids', () => {
    const { buffer, plan, at } = layOut({ ...shape, payloadBytes: 5 }, rows, ids, ['xy', '', 'zzz'])
    const batch = openBatch(buffer, at, plan.totalBytes)
    expect([...(batch.payloadEnds ?? [])]).toEqual([2, 2, 5])
    expect(new TextDecoder().decode(batch.payloads ?? undefined)).toBe('xyzzz')
  })

  test('numeric sections are aligned, for every size and id length', () => {
    for (let size = 1; size < 70; size++) {
      const plan = planBatch({
        ...shape,
        size,
        idBytes: size * 3 + 1,
        payloadBytes: size % 2 ? null : 5,
      })
      expect(plan.inputIdsAt % 64).toBe(0)
      expect((plan.idEndsAt % 4) + (plan.payloadEndsAt % 4) + (plan.totalBytes % 4)).toBe(0)
    }
  })

  test('no single changed header byte is read past the end of the batch', () => {
    const { buffer, plan, at } = layOut({ ...shape, payloadBytes: 5 }, rows, ids, ['xy', '', 'zzz'])
    const view = new Uint8Array(buffer)
    for (let i = 0; i < plan.totalBytes; i++) {
      for (const bits of [0x01, 0x80, 0xff]) {
        view[at + i] ^= bits
        try {
          const batch = openBatch(buffer, at, plan.totalBytes)
          expect(batch.ids.byteOffset + batch.ids.byteLength).toBeLessThanOrEqual(
            at + plan.totalBytes,
          )
          expect(batch.inputIds.byteOffset + batch.inputIds.byteLength).toBeLessThanOrEqual(
            at + plan.totalBytes,
          )
        } catch (error) {
          expect(error).toBeInstanceOf(FabricError)
        }
        view[at + i] ^= bits
      }
    }
  })

  test('another version, other bytes and a cut batch are refused', () => {
    const { buffer, plan, at } = layOut(shape, rows, ids)
    expect(() => openBatch(buffer, at, plan.totalBytes - 4)).toThrow(/agree/)
    expect(() => openBatch(buffer, at, 32)).toThrow(/too few/)
    expect(() => openBatch(buffer, 0, 64)).toThrow(/no batch/)
    new DataView(buffer).setUint16(at + 4, 9, true)
    expect(() => openBatch(buffer, at, plan.totalBytes)).toThrow(/version 9/)
  })
})
