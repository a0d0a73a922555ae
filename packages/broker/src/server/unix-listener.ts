// The Unix socket that consumers on this host connect to. It is bound under a name of its own and
// moved into place whole: whoever finds it at its path finds it listening and with its final mode.
import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, constants, lstatSync, openSync, renameSync, rmSync } from 'node:fs'
import net, { type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { FabricError } from '@fabric/protocol'
import {
  checkReplaceable,
  lockPath,
  PATH_BYTES_MAX,
  type PathLock,
  prepareFolder,
} from './socket-path.js'

export interface UnixListenerOptions {
  readonly path: string
  /** Other users may connect; credentials are checked on the connection. */
  readonly open: boolean
  readonly onConnection: (socket: Socket) => void
  /** A connection could not be accepted: no descriptors are left. */
  readonly onError: (error: Error) => void
}

/** The kernel's queue of connections that were not accepted yet. */
const BACKLOG = 511

export class UnixListener {
  #closed = false

  private constructor(
    readonly path: string,
    readonly server: Server,
    readonly lock: PathLock,
    /** The file as it was put in place. */
    readonly inode: { readonly dev: number; readonly ino: number },
  ) {}

  /** @throws FabricError FABRIC_SOCKET_IN_USE, FABRIC_SOCKET_PATH */
  static async open(options: UnixListenerOptions): Promise<UnixListener> {
    const { path, open, onConnection, onError } = options
    prepareFolder(path, open)
    const lock = await lockPath(path)
    try {
      await checkReplaceable(path)
      const server = net.createServer(onConnection)
      const inode = await bind(server, path, open)
      server.on('error', onError)
      return new UnixListener(path, server, lock, inode)
    } catch (error) {
      lock.release()
      throw error
    }
  }

  /** Takes no new connection; those that stand go on. The file is removed if it is still ours. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.server.close()
    const found = lstatSync(this.path, { throwIfNoEntry: false })
    if (found !== undefined && found.dev === this.inode.dev && found.ino === this.inode.ino)
      rmSync(this.path, { force: true })
    this.lock.release()
  }
}

async function bind(server: Server, path: string, open: boolean) {
  const name = `.${randomBytes(4).toString('hex')}`
  const temporary = join(dirname(path), name)
  // A path may be as long as an address goes and yet have a shorter name than the temporary one:
  // then the folder is reached through a descriptor.
  const isTooLong = Buffer.byteLength(temporary) > PATH_BYTES_MAX
  let folder: number | null = null
  try {
    if (isTooLong) folder = openSync(dirname(path), constants.O_DIRECTORY)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      const address = folder === null ? temporary : `/proc/self/fd/${folder}/${name}`
      server.listen({ path: address, backlog: BACKLOG }, resolve)
    })
    chmodSync(temporary, open ? 0o666 : 0o600)
    const { dev, ino } = lstatSync(temporary)
    renameSync(temporary, path)
    return { dev, ino }
  } catch (cause) {
    server.close()
    rmSync(temporary, { force: true })
    const { message } = cause as Error
    throw new FabricError('FABRIC_SOCKET_PATH', `cannot listen on ${path}: ${message}`, {
      field: 'socket',
      cause,
    })
  } finally {
    if (folder !== null) closeSync(folder)
  }
}
