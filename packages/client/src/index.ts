// What producers import.
export { loadTokenizer, type TokenizerOptions } from './tokenizer/load.js'
export type { EncodedTexts } from './tokenizer/messages.js'
export { TokenizerPool, type TokenizerPoolOptions } from './tokenizer/pool.js'
export { IdBuffer, type Tokenizer } from './tokenizer/tokenizer.js'
