// Where the Unix socket stands and who may have it: the default path, what is refused, and how a
// stale file is told from a live broker.
//
// Two brokers that start at once must not both win. The kernel lets one process at a time hold a name
// in its abstract namespace and frees it when the process ends, however it ends: the holder of the
// lock named after the path alone looks at what stands there and replaces it.
import { createHash } from 'node:crypto'
import { accessSync, constants, lstatSync, realpathSync } from 'node:fs'
import net from 'node:net'
import { basename, dirname, join } from 'node:path'
import { FabricError } from '@fabric/protocol'
import { makeFolder } from '../folder.js'

/** sun_path holds 108 bytes, the last is 0. */
export const PATH_BYTES_MAX = 107
const SYSTEM_FOLDER = '/run/fabric'
const SOCKET_NAME = 'broker.sock'
const PROBE_TIMEOUT_MS = 2_000

const refuse = (message: string, cause?: unknown): never => {
  throw new FabricError('FABRIC_SOCKET_PATH', message, { field: 'socket', cause })
}

/** `/run/fabric/broker.sock`, else `$XDG_RUNTIME_DIR/fabric/broker.sock` (interfaces.md). */
export function defaultSocketPath(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  if (isWritable(SYSTEM_FOLDER) || (!exists(SYSTEM_FOLDER) && isWritable(dirname(SYSTEM_FOLDER))))
    return join(SYSTEM_FOLDER, SOCKET_NAME)
  const runtimeFolder = environment.XDG_RUNTIME_DIR
  if (runtimeFolder === undefined || runtimeFolder === '')
    return refuse(
      `${SYSTEM_FOLDER} is not writable and XDG_RUNTIME_DIR is not set: name a --socket`,
    )
  return join(runtimeFolder, 'fabric', SOCKET_NAME)
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/** Makes the folder if needed. @throws FabricError FABRIC_SOCKET_PATH */
export function prepareFolder(path: string, open: boolean): void {
  if (Buffer.byteLength(path) > PATH_BYTES_MAX)
    refuse(
      `${path} has ${Buffer.byteLength(path)} bytes; a socket path has at most ${PATH_BYTES_MAX}`,
    )
  const folder = dirname(path)
  try {
    makeFolder(folder, open ? 0o755 : 0o700)
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (cause) {
    refuse(`${folder} cannot be used: ${(cause as Error).message}`, cause)
  }
}

/** Held for the life of the process. */
export interface PathLock {
  release(): void
}

/** @throws FabricError FABRIC_SOCKET_IN_USE */
export async function lockPath(path: string): Promise<PathLock> {
  const canonical = join(realpathSync(dirname(path)), basename(path))
  const digest = createHash('sha256').update(canonical).digest('hex').slice(0, 32)
  const lock = net.createServer((socket) => socket.destroy())
  try {
    await new Promise<void>((resolve, reject) => {
      lock.once('error', reject)
      lock.listen(`\0fabric-broker-${digest}`, resolve)
    })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause
    throw inUse(path)
  }
  lock.unref()
  return { release: () => lock.close() }
}

const inUse = (path: string) =>
  new FabricError('FABRIC_SOCKET_IN_USE', `another broker listens on ${path}`, { field: 'socket' })

/**
 * Refuses what must not be replaced: a live broker's socket, and whatever is no socket. The caller
 * holds the path's lock.
 * @throws FabricError FABRIC_SOCKET_IN_USE, FABRIC_SOCKET_PATH
 */
export async function checkReplaceable(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) refuse(`${path} exists and is not a socket`)
  const answer = await probe(path)
  if (answer === 'live') throw inUse(path)
  if (answer !== 'stale') refuse(`${path} exists and cannot be looked at: ${answer}`)
}

/** Does anybody answer? A socket file outlives a process that was killed. */
function probe(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(path)
    const end = (answer: string) => {
      socket.destroy()
      resolve(answer)
    }
    // A live broker whose backlog is full neither accepts nor refuses.
    socket.setTimeout(PROBE_TIMEOUT_MS, () => end('live'))
    socket.on('connect', () => end('live'))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') end('stale')
      else if (error.code === 'EAGAIN') end('live')
      else end(error.message)
    })
  })
}
