// Reads a model folder as Hugging Face and sentence-transformers lay it out. Everything but the graph
// is optional; what is there must be readable.
//
//   model.onnx or onnx/model.onnx   the graph (its external data files beside it)
//   config.json                     vocab_size, max_position_embeddings
//   1_Pooling/config.json           how token vectors become one
//   modules.json                    whether the vector is normalised
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { FabricError } from '@fabric/protocol'
import { messageOf } from '../../log.js'

export type Pooling = 'mean' | 'cls'

export interface ModelDir {
  readonly graphPath: string
  readonly vocabSize: number | null
  readonly maxPositions: number | null
  readonly pooling: Pooling
  /** What modules.json says; null where there is none. */
  readonly normalizes: boolean | null
}

const GRAPHS = ['model.onnx', join('onnx', 'model.onnx')]

/** @throws FabricError FABRIC_MODEL_DIR naming the file and the cause */
export function readModelDir(dir: string): ModelDir {
  checkFolder(dir)
  const graphPath = GRAPHS.map((name) => join(dir, name)).find((path) => existsSync(path))
  if (graphPath === undefined)
    throw refused(`${dir} holds no model.onnx and no ${join('onnx', 'model.onnx')}`)
  const config = readJson(join(dir, 'config.json')) ?? {}
  const modules = readJson(join(dir, 'modules.json'))
  return {
    graphPath,
    vocabSize: positiveOrNull(config.vocab_size),
    maxPositions: positiveOrNull(config.max_position_embeddings),
    pooling: readPooling(join(dir, '1_Pooling', 'config.json')),
    normalizes: modules === null ? null : listsNormalize(modules),
  }
}

function checkFolder(dir: string): void {
  try {
    if (!statSync(dir).isDirectory()) throw new Error('it is not a folder')
    accessSync(dir, constants.R_OK | constants.X_OK)
  } catch (cause) {
    throw refused(`model folder ${dir} cannot be read: ${messageOf(cause)}`, cause)
  }
}

function readPooling(path: string): Pooling {
  const config = readJson(path)
  if (config === null || config.pooling_mode_mean_tokens === true) return 'mean'
  if (config.pooling_mode_cls_token === true) return 'cls'
  throw refused(`${path}: only mean and cls pooling are known here`)
}

const listsNormalize = (modules: Record<string, unknown>): boolean =>
  Object.values(modules).some((module) =>
    String((module as { type?: unknown } | null)?.type).endsWith('.Normalize'),
  )

/** The object or array in a JSON file; null where there is no such file. */
function readJson(path: string): Record<string, unknown> | null {
  if (!existsSync(path)) return null
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof value !== 'object' || value === null) throw new Error('it holds no object')
    return value as Record<string, unknown>
  } catch (cause) {
    throw refused(`${path} cannot be read: ${messageOf(cause)}`, cause)
  }
}

const positiveOrNull = (value: unknown): number | null =>
  typeof value === 'number' && value > 0 ? value : null

const refused = (message: string, cause?: unknown) =>
  new FabricError('FABRIC_MODEL_DIR', message, { field: 'modelDir', cause })
