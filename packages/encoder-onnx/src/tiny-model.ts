// A BERT encoder with random weights, complete in one file of under a megabyte and built in
// milliseconds: what tests and benches of everything around the model run on.
import type { BertConfig } from './bert-config.js'
import { type BertGraphOptions, buildBertGraph } from './bert-encoder.js'

export interface TinyModelOptions
  extends Pick<BertGraphOptions, 'inputType' | 'output' | 'tokenTypeIds'> {
  readonly config?: Partial<BertConfig>
}

export interface TinyModel {
  readonly onnx: Uint8Array
  readonly config: BertConfig
}

const TINY: BertConfig = {
  num_hidden_layers: 2,
  num_attention_heads: 4,
  hidden_size: 64,
  intermediate_size: 256,
  vocab_size: 2048,
  max_position_embeddings: 512,
  type_vocab_size: 2,
  layer_norm_eps: 1e-12,
}

/** The same seed gives the same bytes. */
export function randomTinyModel(seed: number, options: TinyModelOptions = {}): TinyModel {
  const { config: changes, ...graph } = options
  const config = { ...TINY, ...changes }
  return { onnx: buildBertGraph({ ...graph, config, source: { seed } }), config }
}
