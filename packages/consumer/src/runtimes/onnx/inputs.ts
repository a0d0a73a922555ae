// The tensors that go into the graph. Token ids that the graph takes as int32 are the batch's own
// bytes, in the ring: nothing is copied. The rest is written into buffers that are used again.
import { FabricError } from '@fabric/protocol'
import type { Tensor } from 'onnxruntime-node'
import type { PaddedRows } from '../padded-rows.js'
import type { OrtModule, Session } from './session.js'

type IntegerType = 'int32' | 'int64'
type Fill = (rows: PaddedRows, target: Int32Array | BigInt64Array) => void

const FILLS: Readonly<Record<string, Fill>> = {
  input_ids: fillIds,
  attention_mask: fillMask,
  token_type_ids: (_rows, target) => fillAll(target, 0, target.length, 0),
}

export class GraphInputs {
  readonly #ort: OrtModule
  readonly #inputs: readonly { readonly name: string; readonly type: IntegerType }[]
  readonly #buffers = new Map<string, Int32Array | BigInt64Array>()

  /** @throws FabricError FABRIC_RUNTIME_FAILED when the graph wants what a batch cannot give */
  constructor(ort: OrtModule, session: Session, graphPath: string) {
    this.#ort = ort
    this.#inputs = session.inputMetadata.map((input) => checkedInput(input, graphPath))
    if (!this.#inputs.some(({ name }) => name === 'input_ids'))
      throw unusable(graphPath, 'it has no input input_ids')
  }

  /** Valid until the next call. */
  tensors(rows: PaddedRows): Record<string, Tensor> {
    const dims = [rows.size, rows.paddedLength]
    return Object.fromEntries(
      this.#inputs.map(({ name, type }) => {
        const inPlace = name === 'input_ids' && type === 'int32'
        const data = inPlace ? rows.inputIds : this.#filled(name, type, rows)
        return [name, new this.#ort.Tensor(type, data as Int32Array, dims)]
      }),
    )
  }

  #filled(name: string, type: IntegerType, rows: PaddedRows): Int32Array | BigInt64Array {
    const length = rows.size * rows.paddedLength
    let buffer = this.#buffers.get(name)
    if (buffer === undefined || buffer.length < length) {
      buffer = type === 'int64' ? new BigInt64Array(length) : new Int32Array(length)
      this.#buffers.set(name, buffer)
    }
    const target = buffer.subarray(0, length)
    FILLS[name](rows, target)
    return target
  }
}

function checkedInput(input: Session['inputMetadata'][number], graphPath: string) {
  const { name } = input
  if (!Object.hasOwn(FILLS, name))
    throw unusable(
      graphPath,
      `it wants the input ${name}; a batch gives ${Object.keys(FILLS).join(', ')}`,
    )
  if (!input.isTensor || (input.type !== 'int32' && input.type !== 'int64'))
    throw unusable(graphPath, `its input ${name} must be a tensor of int32 or int64`)
  const fixed = input.shape.find((size) => typeof size === 'number')
  if (fixed !== undefined)
    throw unusable(
      graphPath,
      `its input ${name} has the fixed shape ${input.shape.join(' x ')}: export it with dynamic axes`,
    )
  return { name, type: input.type } as const
}

function fillIds({ inputIds }: PaddedRows, target: Int32Array | BigInt64Array): void {
  if (target instanceof Int32Array) target.set(inputIds)
  else for (let i = 0; i < inputIds.length; i++) target[i] = BigInt(inputIds[i])
}

function fillMask(rows: PaddedRows, target: Int32Array | BigInt64Array): void {
  for (let i = 0; i < rows.size; i++) {
    const start = i * rows.paddedLength
    const end = start + rows.lengths[i]
    fillAll(target, start, end, 1)
    fillAll(target, end, start + rows.paddedLength, 0)
  }
}

function fillAll(target: Int32Array | BigInt64Array, start: number, end: number, value: 0 | 1) {
  if (target instanceof Int32Array) target.fill(value, start, end)
  else target.fill(BigInt(value), start, end)
}

const unusable = (graphPath: string, why: string) =>
  new FabricError('FABRIC_RUNTIME_FAILED', `${graphPath} cannot be used: ${why}`)
