// A BERT encoder as an ONNX graph: embeddings, layers of attention and feed-forward, and, for the
// output `embedding`, the mean over the mask and the L2 norm. Weight names are those of Hugging
// Face's BertModel.
import type { BertConfig } from './bert-config.js'
import { Graph, type Value } from './graph.js'
import { DataType } from './onnx-proto.js'
import { randomWeights, safetensorsWeights, type Weights } from './weights.js'

export type BertSource =
  | {
      /** Path of the weights. */
      readonly safetensors: string
      /** Name of the weights' file beside the graph, where the engine will look for it. */
      readonly location: string
    }
  | { readonly seed: number }

export interface BertGraphOptions {
  readonly source: BertSource
  readonly config: BertConfig
  /** Keep only the first layers: real weights at a fraction of the cost, for tests. Default all. */
  readonly layers?: number
  readonly inputType?: 'int32' | 'int64'
  readonly output?: 'embedding' | 'last_hidden_state'
  /** Declare the input `token_type_ids`; without it every token is of type 0. */
  readonly tokenTypeIds?: boolean
}

interface Encoder {
  readonly graph: Graph
  readonly config: BertConfig
  readonly weights: Weights
}

/** The bytes of a model.onnx. */
export function buildBertGraph(options: BertGraphOptions): Uint8Array {
  const { source, config } = options
  const layers = options.layers ?? config.num_hidden_layers
  if (!Number.isInteger(layers) || layers < 1 || layers > config.num_hidden_layers)
    throw new Error(`layers must be an integer from 1 to ${config.num_hidden_layers}`)
  const graph = new Graph()
  const weights =
    'seed' in source
      ? randomWeights(graph, source.seed)
      : safetensorsWeights(graph, source.safetensors, source.location)
  const encoder = { graph, config, weights }
  const input = (name: string) =>
    graph.input(name, DataType[options.inputType ?? 'int32'], ['batch', 'sequence'])

  const inputIds = input('input_ids')
  const mask = graph.node('Cast', [input('attention_mask')], { to: DataType.float32 })
  const types = options.tokenTypeIds ? input('token_type_ids') : null
  let hidden = embeddings(encoder, inputIds, types)
  const maskBias = additiveMask(graph, mask)
  for (let layer = 0; layer < layers; layer++)
    hidden = encoderLayer(encoder, `encoder.layer.${layer}`, hidden, maskBias)

  if (options.output === 'last_hidden_state')
    graph.output('last_hidden_state', hidden, ['batch', 'sequence', config.hidden_size])
  else graph.output('embedding', meanPooled(graph, hidden, mask), ['batch', config.hidden_size])
  return graph.encode('bert')
}

function embeddings(encoder: Encoder, inputIds: Value, types: Value | null): Value {
  const { graph, config, weights } = encoder
  const table = (name: string, rows: number) =>
    weights(`embeddings.${name}_embeddings.weight`, [rows, config.hidden_size])
  const rows = (values: Value, count: Value) =>
    graph.node('Slice', [values, graph.integers(0), count, graph.integers(0)])
  const words = graph.node('Gather', [table('word', config.vocab_size), inputIds], { axis: 0 })
  const sequence = graph.node('Shape', [inputIds], { start: 1, end: 2 })
  const positions = rows(table('position', config.max_position_embeddings), sequence)
  const typeTable = table('token_type', config.type_vocab_size)
  const typed =
    types === null
      ? rows(typeTable, graph.integers(1))
      : graph.node('Gather', [typeTable, types], { axis: 0 })
  const sum = graph.node('Add', [graph.node('Add', [words, positions]), typed])
  return layerNorm(encoder, 'embeddings.LayerNorm', sum)
}

/** 0 where there is a token and a huge negative number where there is none, for every head and query. */
function additiveMask(graph: Graph, mask: Value): Value {
  const absent = graph.node('Sub', [graph.scalar(1), mask])
  const wide = graph.node('Unsqueeze', [absent, graph.integers(1, 2)])
  return graph.node('Mul', [wide, graph.scalar(-1e30)])
}

function encoderLayer(encoder: Encoder, name: string, hidden: Value, maskBias: Value): Value {
  const { graph, config } = encoder
  const { hidden_size: width, intermediate_size: inner } = config
  const add = (a: Value, b: Value) => graph.node('Add', [a, b])
  const context = attention(encoder, `${name}.attention.self`, hidden, maskBias)
  const attended = layerNorm(
    encoder,
    `${name}.attention.output.LayerNorm`,
    add(linear(encoder, `${name}.attention.output.dense`, context, width, width), hidden),
  )
  const expanded = gelu(
    graph,
    linear(encoder, `${name}.intermediate.dense`, attended, width, inner),
  )
  const contracted = linear(encoder, `${name}.output.dense`, expanded, inner, width)
  return layerNorm(encoder, `${name}.output.LayerNorm`, add(contracted, attended))
}

function attention(encoder: Encoder, name: string, hidden: Value, maskBias: Value): Value {
  const { graph, config } = encoder
  const { hidden_size: width, num_attention_heads: heads } = config
  const headWidth = width / heads
  // 0 in a Reshape copies that dimension: batch and sequence stay.
  const perHead = (part: string, perm: readonly number[]) => {
    const projected = linear(encoder, `${name}.${part}`, hidden, width, width)
    const shape = graph.integers(0, 0, heads, headWidth)
    return graph.node('Transpose', [graph.node('Reshape', [projected, shape])], { perm })
  }
  const products = graph.node('MatMul', [
    perHead('query', [0, 2, 1, 3]),
    perHead('key', [0, 2, 3, 1]),
  ])
  const scaled = graph.node('Mul', [products, graph.scalar(1 / Math.sqrt(headWidth))])
  const weights = graph.node('Softmax', [graph.node('Add', [scaled, maskBias])], { axis: -1 })
  const mixed = graph.node('MatMul', [weights, perHead('value', [0, 2, 1, 3])])
  const merged = graph.node('Transpose', [mixed], { perm: [0, 2, 1, 3] })
  return graph.node('Reshape', [merged, graph.integers(0, 0, width)])
}

function linear(encoder: Encoder, name: string, value: Value, from: number, to: number): Value {
  const { graph, weights } = encoder
  const matrix = graph.node('Transpose', [weights(`${name}.weight`, [to, from])], { perm: [1, 0] })
  return graph.node('Add', [graph.node('MatMul', [value, matrix]), weights(`${name}.bias`, [to])])
}

function layerNorm(encoder: Encoder, name: string, value: Value): Value {
  const { graph, config, weights } = encoder
  const width = [config.hidden_size]
  return graph.node(
    'LayerNormalization',
    [value, weights(`${name}.weight`, width), weights(`${name}.bias`, width)],
    { axis: -1, epsilon: { float: config.layer_norm_eps } },
  )
}

/** The exact form, by the error function: x / 2 * (1 + erf(x / sqrt 2)). */
function gelu(graph: Graph, value: Value): Value {
  const erf = graph.node('Erf', [graph.node('Div', [value, graph.scalar(Math.SQRT2)])])
  const half = graph.node('Mul', [value, graph.scalar(0.5)])
  return graph.node('Mul', [half, graph.node('Add', [erf, graph.scalar(1)])])
}

/** Lower bounds as in sentence-transformers: an empty row gives zeros, not NaN. */
function meanPooled(graph: Graph, hidden: Value, mask: Value): Value {
  const axis = graph.integers(1)
  const masked = graph.node('Mul', [hidden, graph.node('Unsqueeze', [mask, graph.integers(2)])])
  const sum = graph.node('ReduceSum', [masked, axis], { keepdims: 0 })
  const tokens = graph.node('ReduceSum', [mask, axis], { keepdims: 1 })
  const mean = graph.node('Div', [sum, graph.node('Max', [tokens, graph.scalar(1e-9)])])
  const norm = graph.node('ReduceL2', [mean, axis], { keepdims: 1 })
  return graph.node('Div', [mean, graph.node('Max', [norm, graph.scalar(1e-12)])])
}
