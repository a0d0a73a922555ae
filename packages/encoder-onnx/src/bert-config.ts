// The numbers of a BERT encoder, under Hugging Face's names, as config.json has them.
import { readFileSync } from 'node:fs'

export interface BertConfig {
  readonly num_hidden_layers: number
  readonly num_attention_heads: number
  readonly hidden_size: number
  readonly intermediate_size: number
  readonly vocab_size: number
  readonly max_position_embeddings: number
  readonly type_vocab_size: number
  readonly layer_norm_eps: number
}

const FIELDS = [
  'num_hidden_layers',
  'num_attention_heads',
  'hidden_size',
  'intermediate_size',
  'vocab_size',
  'max_position_embeddings',
  'type_vocab_size',
  'layer_norm_eps',
] as const satisfies readonly (keyof BertConfig)[]

export function readBertConfig(path: string): BertConfig {
  const config = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  for (const field of FIELDS) {
    const value = config[field]
    if (typeof value !== 'number' || !(value > 0))
      throw new Error(`${path}: ${field} must be a positive number`)
  }
  if (config.hidden_act !== undefined && config.hidden_act !== 'gelu')
    throw new Error(`${path}: hidden_act is ${config.hidden_act}, only gelu is built here`)
  return config as unknown as BertConfig
}
