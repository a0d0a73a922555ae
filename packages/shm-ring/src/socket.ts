/** The Unix control socket, as far as Node can't do it: passing descriptors, and who the peer is. */
import { RingError } from './errors.js'
import { type NativePeerWatch, native, ringSupport } from './native.js'

export interface ConnectOptions {
  path: string
  /** Sent first. */
  hello: Uint8Array
  timeoutMs: number
}

export interface Connection {
  /** For net.Socket({ fd }). Nothing past the reply was read from it. */
  socketFd: number
  /** The whole frame, its length word included. */
  reply: Uint8Array
  descriptors: number[]
}

/**
 * Connects, sends `hello` and reads one frame, which starts with its length as 32-bit little-endian
 * (at most 1 MiB, these four bytes included), with its descriptors. Runs on the thread pool.
 */
export async function connectUnix(options: ConnectOptions): Promise<Connection> {
  return native().connectUnix(options.path, options.hello, options.timeoutMs)
}

/**
 * Sends `message` and the descriptors in one go, or throws RingError. Call it before anything else
 * is written to the socket.
 */
export function sendDescriptors(
  socketFd: number,
  message: Uint8Array,
  descriptors: number[],
): void {
  native().sendDescriptors(socketFd, message, descriptors)
}

export interface PeerCredentials {
  pid: number
  uid: number
  gid: number
}

/** The peer as it was when it connected. `pid` is 0 if it lives in a namespace above ours. */
export function peerCredentials(socketFd: number): PeerCredentials {
  return native().peerCredentials(socketFd)
}

/** Ends with close(). */
export interface PeerWatch {
  close(): void
}

/**
 * Calls back once when the process that connected has ended, from the event loop, and does not keep
 * this process alive. The socket alone does not tell: a child that the peer forked without exec keeps
 * it open. null: this kernel cannot watch processes.
 */
export function watchPeer(socketFd: number, onExit: () => void): PeerWatch | null {
  let watch: NativePeerWatch
  try {
    watch = new (native().NativePeerWatch)(socketFd, onExit)
  } catch (error) {
    if (error instanceof RingError && error.code === 'RING_SYSTEM_CALL_FAILED') return null
    throw error
  }
  const gone = watch.gone() ? setImmediate(onExit) : undefined
  return {
    close: () => {
      clearImmediate(gone)
      watch.close()
    },
  }
}

/**
 * Keeps other processes of the same user from writing into this one, and so into its rings, by the
 * calls that debuggers use. Also switches core dumps off. Where there are no rings, nothing is done.
 */
export function hardenProcess(): void {
  if (ringSupport().supported) native().hardenProcess()
}
