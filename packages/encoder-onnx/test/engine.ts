// Runs a graph with ONNX Runtime over rows of token ids, padded to the longest.
import * as ort from 'onnxruntime-node'

const OPTIONS: ort.InferenceSession.SessionOptions = { intraOpNumThreads: 1, logSeverityLevel: 3 }

export const openModel = (path: string) => ort.InferenceSession.create(path, OPTIONS)
export const openGraph = (bytes: Uint8Array) => ort.InferenceSession.create(bytes, OPTIONS)

export interface Output {
  readonly data: Float32Array
  readonly dims: readonly number[]
}

export async function run(
  session: ort.InferenceSession,
  rows: readonly (readonly number[])[],
): Promise<Output> {
  const longest = Math.max(...rows.map((row) => row.length))
  const dims = [rows.length, longest]
  const fill = (value: (row: readonly number[], at: number) => number) =>
    rows.flatMap((row) => Array.from({ length: longest }, (_, at) => value(row, at)))
  const values: Record<string, number[]> = {
    input_ids: fill((row, at) => row[at] ?? 0),
    attention_mask: fill((row, at) => (at < row.length ? 1 : 0)),
    token_type_ids: fill(() => 0),
  }
  const feeds = Object.fromEntries(
    session.inputMetadata.map((input) => {
      const numbers = values[input.name]
      const tensor =
        input.isTensor && input.type === 'int64'
          ? new ort.Tensor('int64', BigInt64Array.from(numbers, BigInt), dims)
          : new ort.Tensor('int32', Int32Array.from(numbers), dims)
      return [input.name, tensor]
    }),
  )
  const output = (await session.run(feeds))[session.outputNames[0]]
  return { data: output.data as Float32Array, dims: output.dims }
}

export const embed = async (session: ort.InferenceSession, rows: readonly (readonly number[])[]) =>
  splitRows(await run(session, rows))

const splitRows = ({ data, dims }: Output) =>
  Array.from({ length: dims[0] }, (_, i) => data.subarray(i * dims[1], (i + 1) * dims[1]))

export function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`${a.length} numbers against ${b.length}`)
  let most = 0
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(a[i] - b[i])
    if (!(difference <= most)) most = difference // a NaN must not pass
  }
  return most
}

/** Masked mean and L2 norm in plain code, against which the graph's own pooling is held. */
export function meanPooled(
  { data, dims }: Output,
  rows: readonly (readonly number[])[],
): Float32Array[] {
  const [, longest, width] = dims
  return rows.map((row, i) => {
    const mean = new Float32Array(width)
    for (let t = 0; t < row.length; t++)
      for (let d = 0; d < width; d++) mean[d] += data[(i * longest + t) * width + d] / row.length
    const norm = Math.hypot(...mean)
    return mean.map((x) => x / norm)
  })
}
