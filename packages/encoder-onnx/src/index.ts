export { type BertConfig, readBertConfig } from './bert-config.js'
export { type BertGraphOptions, type BertSource, buildBertGraph } from './bert-encoder.js'
export {
  type ModelDirOptions,
  type ModelManifest,
  writeModelDir,
  writeTinyModelDir,
} from './model-dir.js'
export { randomTinyModel, type TinyModel, type TinyModelOptions } from './tiny-model.js'
