// The runtime `onnx`: embeddings from an ONNX graph, on CPU or CUDA, in this process.
import { FabricError } from '@fabric/protocol'
import type { Batch } from '../../batches/batch.js'
import { type BatchResults, ItemError } from '../../batches/results.js'
import { messageOf } from '../../log.js'
import { type PaddedRows, paddedRows, tokensOutside, withoutRows } from '../padded-rows.js'
import type { Runtime, RuntimeOptions } from '../runtime.js'
import { GraphInputs } from './inputs.js'
import { type ModelDir, readModelDir } from './model-dir.js'
import { type OutputPlan, planOutput, rowsOf } from './outputs.js'
import { loadOnnxRuntime, openSession, type Session } from './session.js'

/** What providers say when the device has no room: CUDA, cuBLAS and ORT's own arena. */
const OUT_OF_MEMORY =
  /out of memory|failed to allocate memory|CUDA_ERROR_OUT_OF_MEMORY|ALLOC_FAILED/i

/** @throws FabricError FABRIC_MODEL_DIR, FABRIC_RUNTIME_MISSING, FABRIC_RUNTIME_FAILED, FABRIC_DEVICE_UNAVAILABLE */
export async function createOnnxRuntime(options: RuntimeOptions): Promise<Runtime> {
  if (options.modelDir === undefined)
    throw new FabricError('FABRIC_MODEL_DIR', 'the runtime onnx needs --model-dir', {
      field: 'modelDir',
    })
  const dir = readModelDir(options.modelDir)
  if (dir.maxPositions !== null && options.inputLength > dir.maxPositions)
    throw new FabricError(
      'FABRIC_MODEL_DIR',
      `the model in ${options.modelDir} takes ${dir.maxPositions} tokens (max_position_embeddings), ` +
        `the input length is ${options.inputLength}`,
      { field: 'inputLength' },
    )
  const ort = await loadOnnxRuntime()
  const { session, device } = await openSession(ort, dir.graphPath, options)
  const inputs = new GraphInputs(ort, session, dir.graphPath)
  const plan = planOutput(session, dir, options.normalize)
  return new OnnxRuntime(session, inputs, plan, dir, device)
}

class OnnxRuntime implements Runtime {
  readonly layout = 'padded'
  readonly keepLastToken = true
  readonly description: string
  /** Inputs share buffers, so runs follow one another; the engine blocks the thread anyway. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly session: Session,
    private readonly inputs: GraphInputs,
    private readonly plan: OutputPlan,
    private readonly dir: ModelDir,
    device: string,
  ) {
    this.description = `onnx on ${device}, ${dir.graphPath}`
  }

  run(batch: Batch): Promise<BatchResults> {
    const result = this.#last.then(() => this.#runNow(batch))
    this.#last = result.catch(() => {})
    return result
  }

  async close(): Promise<void> {
    await this.#last
    await this.session.release()
  }

  async #runNow(batch: Batch): Promise<BatchResults> {
    const rows = paddedRows(batch)
    const unusable = this.#unusableRows(batch, rows)
    if (unusable.size === 0) return this.#vectors(rows)
    const vectors = await this.#vectors(withoutRows(rows, unusable))
    const width = vectors.length / rows.size
    return Array.from({ length: rows.size }, (_, i) => {
      const why = unusable.get(i)
      if (why !== undefined) return new ItemError(why, { code: 'FABRIC_ITEM_MALFORMED' })
      return vectors.subarray(i * width, (i + 1) * width)
    })
  }

  /** Rows this model has no answer for, and why: each fails alone. */
  #unusableRows(batch: Batch, rows: PaddedRows): ReadonlyMap<number, string> {
    const why = new Map<number, string>()
    batch.payloads?.forEach((payload, i) => {
      if (payload.byteLength > 0)
        why.set(i, 'the runtime onnx takes tokens, this item is a payload')
    })
    const { vocabSize } = this.dir
    const outside = vocabSize === null ? null : tokensOutside(rows, vocabSize)
    outside?.forEach((token, i) => {
      why.set(i, `token ${token} is outside the model’s vocabulary of ${vocabSize}`)
    })
    return why
  }

  async #vectors(rows: PaddedRows): Promise<Float32Array> {
    const { name } = this.plan
    try {
      const { [name]: output } = await this.session.run(this.inputs.tensors(rows), [name])
      const vectors = rowsOf(output, rows, this.plan)
      output.dispose()
      return vectors
    } catch (cause) {
      if (cause instanceof FabricError) throw cause
      const message = messageOf(cause)
      const code = OUT_OF_MEMORY.test(message) ? 'FABRIC_OUT_OF_MEMORY' : 'FABRIC_RUNTIME_FAILED'
      throw new FabricError(code, `onnx: ${message}`, { cause })
    }
  }
}
