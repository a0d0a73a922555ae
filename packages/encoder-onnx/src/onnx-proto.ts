// Field numbers of the ONNX messages that a graph needs, one function a message.
// Reference: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
import {
  bytesField,
  concat,
  type Field,
  floatField,
  integerField,
  messageField,
  stringField,
} from './protobuf.js'

/** TensorProto.DataType. */
export const DataType = { float32: 1, int32: 6, int64: 7, float16: 10, bfloat16: 16 } as const
export type DataType = (typeof DataType)[keyof typeof DataType]

/** A float attribute is marked, because JavaScript cannot tell 1.0 from 1. */
export type Attribute = number | readonly number[] | { readonly float: number }
const ATTRIBUTE_TYPE = { float: 1, int: 2, ints: 7 } as const

function attribute(name: string, value: Attribute): Field[] {
  if (typeof value === 'number')
    return [stringField(1, name), integerField(3, value), integerField(20, ATTRIBUTE_TYPE.int)]
  if ('float' in value)
    return [
      stringField(1, name),
      floatField(2, value.float),
      integerField(20, ATTRIBUTE_TYPE.float),
    ]
  const ints = value.map((item) => integerField(8, item))
  return [stringField(1, name), ...ints, integerField(20, ATTRIBUTE_TYPE.ints)]
}

export const nodeProto = (
  op: string,
  inputs: readonly string[],
  output: string,
  attributes: Readonly<Record<string, Attribute>>,
): Field[] => [
  ...inputs.map((input) => stringField(1, input)),
  stringField(2, output),
  stringField(4, op),
  ...Object.entries(attributes).map(([name, value]) => messageField(5, attribute(name, value))),
]

const tensorHead = (name: string, type: DataType, shape: readonly number[]): Field[] => [
  ...shape.map((size) => integerField(1, size)),
  integerField(2, type),
  stringField(8, name),
]

export const inlineTensor = (
  name: string,
  type: DataType,
  shape: readonly number[],
  bytes: Uint8Array,
): Field[] => [...tensorHead(name, type, shape), bytesField(9, bytes)]

/** Where a tensor's bytes stand in a file beside the graph. */
export interface ExternalBytes {
  readonly location: string
  readonly offset: number
  readonly byteLength: number
}

export function externalTensor(
  name: string,
  type: DataType,
  shape: readonly number[],
  at: ExternalBytes,
): Field[] {
  const entry = (key: string, value: string | number) =>
    messageField(13, [stringField(1, key), stringField(2, String(value))])
  return [
    ...tensorHead(name, type, shape),
    entry('location', at.location),
    entry('offset', at.offset),
    entry('length', at.byteLength),
    integerField(14, 1), // data_location EXTERNAL
  ]
}

/** A named dimension is one that each run may choose. */
export type Dimension = string | number

export function valueInfo(name: string, type: DataType, shape: readonly Dimension[]): Field[] {
  const dimensions = shape.map((size) =>
    messageField(1, [typeof size === 'string' ? stringField(2, size) : integerField(1, size)]),
  )
  const tensorType = messageField(1, [integerField(1, type), messageField(2, dimensions)])
  return [stringField(1, name), messageField(2, [tensorType])]
}

export interface GraphParts {
  readonly nodes: readonly Field[][]
  readonly tensors: readonly Field[][]
  readonly inputs: readonly Field[][]
  readonly outputs: readonly Field[][]
}

const IR_VERSION = 10
const OPSET = 18

export function modelProto(name: string, graph: GraphParts): Uint8Array {
  const fields = [
    ...graph.nodes.map((node) => messageField(1, node)),
    stringField(2, name),
    ...graph.tensors.map((tensor) => messageField(5, tensor)),
    ...graph.inputs.map((input) => messageField(11, input)),
    ...graph.outputs.map((output) => messageField(12, output)),
  ]
  const opset = [stringField(1, ''), integerField(2, OPSET)]
  return concat([
    integerField(1, IR_VERSION),
    stringField(2, 'inference-fabric'),
    messageField(7, fields),
    messageField(8, opset),
  ])
}
