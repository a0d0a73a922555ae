// Finds the runtime that `--runtime` names: one that is built in, or a module of the user's.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { FabricError } from '@fabric/protocol'
import { messageOf, silentLogger } from '../log.js'
import { createOnnxRuntime } from './onnx/onnx-runtime.js'
import type { CreateRuntime, Runtime, RuntimeRequest } from './runtime.js'

const DEFAULTS = {
  modelDir: undefined,
  device: 'auto',
  threads: 1,
  normalize: 'auto',
  logger: silentLogger,
} as const
const BUILT_IN: Readonly<Record<string, CreateRuntime>> = { onnx: createOnnxRuntime }

/**
 * @param name `onnx`, or the path of a module: one that holds a slash or ends in .js or .mjs
 * @throws FabricError FABRIC_RUNTIME_MISSING, FABRIC_RUNTIME_FAILED, or the runtime's own
 */
export async function createRuntime(name: string, request: RuntimeRequest): Promise<Runtime> {
  const create = Object.hasOwn(BUILT_IN, name) ? BUILT_IN[name] : await importRuntime(name)
  try {
    return checked(name, await create({ ...DEFAULTS, ...request }))
  } catch (cause) {
    if (cause instanceof FabricError) throw cause
    throw new FabricError('FABRIC_RUNTIME_FAILED', `runtime ${name}: ${messageOf(cause)}`, {
      cause,
    })
  }
}

async function importRuntime(name: string): Promise<CreateRuntime> {
  const fail = (why: string, cause?: unknown) =>
    new FabricError('FABRIC_RUNTIME_MISSING', `runtime ${name}: ${why}`, {
      field: 'runtime',
      cause,
    })
  if (!/[/\\]|\.[cm]?js$/.test(name))
    throw fail(`built in are ${Object.keys(BUILT_IN).join(', ')}; a module is given by its path`)
  const path = resolve(name)
  let module: Record<string, unknown>
  try {
    module = await import(pathToFileURL(path).href)
  } catch (cause) {
    throw fail(`${path} cannot be loaded: ${messageOf(cause)}`, cause)
  }
  if (typeof module.createRuntime !== 'function')
    throw fail(`${path} exports no function createRuntime`)
  return module.createRuntime as CreateRuntime
}

function checked(name: string, runtime: Runtime): Runtime {
  if (typeof runtime?.run === 'function' && typeof runtime.close === 'function') return runtime
  throw new FabricError(
    'FABRIC_RUNTIME_FAILED',
    `runtime ${name}: createRuntime must return an object with the functions run and close`,
  )
}
