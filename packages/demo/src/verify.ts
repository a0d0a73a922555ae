// Holds a sample of the run's vectors against the same model run one text at a time, straight through
// ONNX Runtime: no batching, no padding, none of the product's code but the tokenizer.
import { join } from 'node:path'
import * as ort from 'onnxruntime-node'

export type Tokenize = (text: string) => ArrayLike<number>

export interface Sample {
  readonly id: string
  readonly text: string
  readonly vector: readonly number[]
}

export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`vectors of ${a.length} and ${b.length} numbers`)
  let [dot, aa, bb] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i]
    aa += a[i] * a[i]
    bb += b[i] * b[i]
  }
  return dot / Math.sqrt(aa * bb)
}

/** Lowest cosine of the samples against the model run alone, and whose it is. */
export async function worstCosine(
  modelDir: string,
  samples: readonly Sample[],
  tokenize: Tokenize,
): Promise<{ readonly id: string; readonly cosine: number }> {
  const session = await ort.InferenceSession.create(join(modelDir, 'model.onnx'), {
    intraOpNumThreads: 2,
    logSeverityLevel: 3,
  })
  let worst = { id: '', cosine: 1 }
  for (const sample of samples) {
    const ids = Int32Array.from(tokenize(sample.text))
    const shape = [1, ids.length]
    const outputs = await session.run({
      input_ids: new ort.Tensor('int32', ids, shape),
      attention_mask: new ort.Tensor('int32', new Int32Array(ids.length).fill(1), shape),
    })
    const alone = outputs[session.outputNames[0]].data as Float32Array
    const similarity = cosine(alone, sample.vector)
    if (similarity < worst.cosine || worst.id === '') worst = { id: sample.id, cosine: similarity }
  }
  await session.release()
  return worst
}
