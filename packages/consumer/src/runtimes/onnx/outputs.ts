// From the graph's output to one row per item: an embedding as it is, token vectors pooled.
import { FabricError } from '@fabric/protocol'
import type { Tensor } from 'onnxruntime-node'
import type { PaddedRows } from '../padded-rows.js'
import type { ModelDir, Pooling } from './model-dir.js'
import type { Session } from './session.js'

/** In the order in which they are preferred; else a graph's only output is taken. */
const NAMES = ['embedding', 'sentence_embedding', 'last_hidden_state', 'token_embeddings', 'logits']

export interface OutputPlan {
  readonly name: string
  readonly pooling: Pooling
  /** null: only rows that are pooled here, since the graph ends before its norm. */
  readonly normalize: boolean | null
}

export function planOutput(
  session: Session,
  dir: ModelDir,
  normalize: 'auto' | 'yes' | 'no',
): OutputPlan {
  const outputs = session.outputMetadata
  const known = NAMES.find((name) => outputs.some((output) => output.name === name))
  const name = known ?? (outputs.length === 1 ? outputs[0].name : undefined)
  const output = outputs.find((candidate) => candidate.name === name)
  const fail = (why: string) =>
    new FabricError('FABRIC_RUNTIME_FAILED', `${dir.graphPath} cannot be used: ${why}`)
  if (name === undefined || output === undefined)
    throw fail(
      `of its outputs ${outputs.map((o) => o.name).join(', ')} none is ${NAMES.join(', ')}`,
    )
  if (!output.isTensor || output.type !== 'float32')
    throw fail(`its output ${name} is no tensor of float32`)
  const asked = normalize === 'auto' ? dir.normalizes : normalize === 'yes'
  return { name, pooling: dir.pooling, normalize: asked }
}

/** Rows of the batch, one after another, in memory of their own. */
export function rowsOf(output: Tensor, rows: PaddedRows, plan: OutputPlan): Float32Array {
  const data = output.data as Float32Array
  const isPooled = output.dims.length === 2
  if (output.dims[0] !== rows.size || (!isPooled && output.dims.length !== 3))
    throw new FabricError(
      'FABRIC_RUNTIME_FAILED',
      `output ${plan.name} has shape ${output.dims.join(' x ')} for ${rows.size} items`,
    )
  const width = output.dims[output.dims.length - 1]
  const vectors = isPooled ? data.slice() : pooled(data, rows, width, plan.pooling)
  // A graph that pools has its own norm, or wants none: it is left alone unless --normalize yes.
  const shouldNormalize = plan.normalize ?? !isPooled
  if (shouldNormalize) normalizeRows(vectors, width)
  return vectors
}

function pooled(
  data: Float32Array,
  rows: PaddedRows,
  width: number,
  pooling: Pooling,
): Float32Array {
  const vectors = new Float32Array(rows.size * width)
  for (let i = 0; i < rows.size; i++) {
    const target = vectors.subarray(i * width, (i + 1) * width)
    const start = i * rows.paddedLength * width
    if (pooling === 'cls') target.set(data.subarray(start, start + width))
    else addMean(target, data.subarray(start, start + rows.lengths[i] * width), width)
  }
  return vectors
}

function addMean(target: Float32Array, tokens: Float32Array, width: number): void {
  const count = Math.max(1, tokens.length / width)
  for (let at = 0; at < tokens.length; at += width)
    for (let d = 0; d < width; d++) target[d] += tokens[at + d]
  for (let d = 0; d < width; d++) target[d] /= count
}

function normalizeRows(vectors: Float32Array, width: number): void {
  for (let start = 0; start < vectors.length; start += width) {
    let squares = 0
    for (let d = start; d < start + width; d++) squares += vectors[d] * vectors[d]
    const norm = Math.max(Math.sqrt(squares), 1e-12)
    for (let d = start; d < start + width; d++) vectors[d] /= norm
  }
}
