// The thread of a tokenizer pool: loads the tokenizer once, then turns each batch of texts into
// flat ids. It holds no queue: the pool sends one batch after another.
import { parentPort, workerData } from 'node:worker_threads'
import { FabricError } from '@fabric/protocol'
import { loadTokenizer } from './load.js'
import type { EncodedTexts, EncodeRequest, WorkerReply, WorkerSetup } from './messages.js'
import { IdBuffer, type Tokenizer } from './tokenizer.js'

const port = parentPort!
const reply = (message: WorkerReply, transfer: ArrayBuffer[] = []) =>
  port.postMessage(message, transfer)

const bodyOf = (error: unknown) =>
  (error instanceof FabricError
    ? error
    : new FabricError('FABRIC_TOKENIZER', `tokenizer: ${String(error)}`)
  ).toBody()

function encodeAll(tokenizer: Tokenizer, texts: readonly string[]): EncodedTexts {
  let chars = 0
  for (const text of texts) chars += text.length
  const buffer = new IdBuffer(Math.ceil(chars / 2) + 2 * texts.length)
  const lengths = new Int32Array(texts.length)
  for (let i = 0; i < texts.length; i++) lengths[i] = tokenizer.encode(texts[i], buffer)
  return { ids: buffer.ids.slice(0, buffer.length), lengths }
}

function serve(tokenizer: Tokenizer): void {
  port.on('message', ({ texts }: EncodeRequest) => {
    try {
      const { ids, lengths } = encodeAll(tokenizer, texts)
      const buffers = [ids.buffer as ArrayBuffer, lengths.buffer as ArrayBuffer]
      reply({ kind: 'encoded', ids, lengths }, buffers)
    } catch (error) {
      reply({ kind: 'failed', error: bodyOf(error) })
    }
  })
}

try {
  const { tokenizer: path, options } = workerData as WorkerSetup
  const tokenizer = loadTokenizer(path, options)
  serve(tokenizer)
  reply({ kind: 'ready', tokenizer: tokenizer.kind })
} catch (error) {
  reply({ kind: 'refused', error: bodyOf(error) })
}
