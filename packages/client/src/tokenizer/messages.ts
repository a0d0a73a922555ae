// What the pool and its workers say to each other.
import type { ErrorBody } from '@fabric/protocol'
import type { TokenizerOptions } from './load.js'

export interface WorkerSetup {
  readonly tokenizer: string
  readonly options: TokenizerOptions
}

export interface EncodeRequest {
  readonly texts: readonly string[]
}

/** Ids of the texts one after another, and how many each has. Both buffers are transferred. */
export interface EncodedTexts {
  readonly ids: Int32Array
  readonly lengths: Int32Array
}

export type WorkerReply =
  | { readonly kind: 'ready'; readonly tokenizer: 'wordpiece' | 'huggingface' }
  | { readonly kind: 'refused'; readonly error: ErrorBody }
  | ({ readonly kind: 'encoded' } & EncodedTexts)
  | { readonly kind: 'failed'; readonly error: ErrorBody }
