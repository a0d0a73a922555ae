// Opens an ONNX Runtime session: finds the package, chooses the device, says why when either fails.
import { FabricError } from '@fabric/protocol'
import type * as Ort from 'onnxruntime-node'
import { type Logger, messageOf } from '../../log.js'

export type OrtModule = typeof Ort
export type Session = Ort.InferenceSession

export interface SessionOptions {
  readonly device: 'cpu' | 'cuda' | 'auto'
  readonly threads: number
  readonly logger: Logger
}

export interface OpenSession {
  readonly session: Session
  readonly device: 'cpu' | 'cuda'
}

/** onnxruntime-node is an optional peer: 300 MB that only a host with this runtime needs. */
export async function loadOnnxRuntime(): Promise<OrtModule> {
  try {
    const ort = await import('onnxruntime-node')
    ort.env.logLevel = 'fatal' // as below, for what is not a session's
    return ort
  } catch (cause) {
    throw new FabricError(
      'FABRIC_RUNTIME_MISSING',
      `the runtime onnx needs the package onnxruntime-node, which cannot be loaded (${firstLine(cause)}); ` +
        'install it with: npm install onnxruntime-node@1.30.0 (with ONNXRUNTIME_NODE_INSTALL=skip for the CPU alone)',
      { field: 'runtime', cause },
    )
  }
}

/** @throws FabricError FABRIC_DEVICE_UNAVAILABLE, FABRIC_RUNTIME_FAILED */
export async function openSession(
  ort: OrtModule,
  graphPath: string,
  { device, threads, logger }: SessionOptions,
): Promise<OpenSession> {
  if (device === 'cpu') return openOnCpu(ort, graphPath, threads)
  try {
    const session = await open(ort, graphPath, 'cuda', threads)
    return { session, device: 'cuda' }
  } catch (cause) {
    if (device === 'auto') {
      logger.info({ reason: firstLine(cause) }, 'cuda cannot be used, running on the cpu')
      return openOnCpu(ort, graphPath, threads)
    }
    throw new FabricError(
      'FABRIC_DEVICE_UNAVAILABLE',
      `device cuda cannot be used: ${firstLine(cause)}`,
      { field: 'device', cause },
    )
  }
}

async function openOnCpu(ort: OrtModule, graphPath: string, threads: number): Promise<OpenSession> {
  try {
    return { session: await open(ort, graphPath, 'cpu', threads), device: 'cpu' }
  } catch (cause) {
    throw new FabricError(
      'FABRIC_RUNTIME_FAILED',
      `${graphPath} cannot be loaded: ${firstLine(cause)}`,
      { cause },
    )
  }
}

/**
 * The library prints what it also throws, to standard error and not as our log lines are; severity 4
 * leaves that to us.
 */
const open = (ort: OrtModule, graphPath: string, provider: 'cpu' | 'cuda', threads: number) =>
  ort.InferenceSession.create(graphPath, {
    executionProviders: [provider],
    intraOpNumThreads: threads,
    logSeverityLevel: 4,
  })

const firstLine = (thrown: unknown) => messageOf(thrown).trim().split('\n')[0]
