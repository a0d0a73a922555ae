// A graph under construction: each call adds one node and returns the name of its value, so that
// model code reads as arithmetic. Owns the naming of values; knows nothing of any model.
import {
  type Attribute,
  DataType,
  type Dimension,
  type ExternalBytes,
  externalTensor,
  inlineTensor,
  modelProto,
  nodeProto,
  valueInfo,
} from './onnx-proto.js'
import type { Field } from './protobuf.js'

/** The name of a value in the graph. */
export type Value = string

export class Graph {
  readonly #nodes: Field[][] = []
  readonly #tensors: Field[][] = []
  readonly #inputs: Field[][] = []
  readonly #outputs: Field[][] = []
  readonly #constants = new Map<string, Value>()
  #values = 0

  input(name: string, type: DataType, shape: readonly Dimension[]): Value {
    this.#inputs.push(valueInfo(name, type, shape))
    return name
  }

  /** Gives `value` the public name `name`. */
  output(name: string, value: Value, shape: readonly Dimension[]): void {
    this.#nodes.push(nodeProto('Identity', [value], name, {}))
    this.#outputs.push(valueInfo(name, DataType.float32, shape))
  }

  node(
    op: string,
    inputs: readonly Value[],
    attributes: Readonly<Record<string, Attribute>> = {},
  ): Value {
    const value = this.#name(op)
    this.#nodes.push(nodeProto(op, inputs, value, attributes))
    return value
  }

  /** A constant list of int64, as shapes, axes and bounds want it. */
  integers(...values: readonly number[]): Value {
    return this.#constant(`integers ${values.join()}`, (name) =>
      inlineTensor(
        name,
        DataType.int64,
        [values.length],
        new Uint8Array(BigInt64Array.from(values, BigInt).buffer),
      ),
    )
  }

  scalar(value: number): Value {
    return this.#constant(`scalar ${value}`, (name) =>
      inlineTensor(name, DataType.float32, [], new Uint8Array(Float32Array.of(value).buffer)),
    )
  }

  /** A weight whose values stand in the graph itself. */
  weight(name: string, shape: readonly number[], values: Float32Array): Value {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
    this.#tensors.push(inlineTensor(name, DataType.float32, shape, bytes))
    return name
  }

  /** A weight whose values stand in a file beside the graph; the engine folds the cast at load. */
  externalWeight(name: string, type: DataType, shape: readonly number[], at: ExternalBytes): Value {
    this.#tensors.push(externalTensor(name, type, shape, at))
    return type === DataType.float32 ? name : this.node('Cast', [name], { to: DataType.float32 })
  }

  encode(name: string): Uint8Array {
    return modelProto(name, {
      nodes: this.#nodes,
      tensors: this.#tensors,
      inputs: this.#inputs,
      outputs: this.#outputs,
    })
  }

  #constant(key: string, tensor: (name: Value) => Field[]): Value {
    const known = this.#constants.get(key)
    if (known !== undefined) return known
    const name = this.#name('constant')
    this.#tensors.push(tensor(name))
    this.#constants.set(key, name)
    return name
  }

  #name(what: string): Value {
    this.#values += 1
    return `${what}_${this.#values}`
  }
}
