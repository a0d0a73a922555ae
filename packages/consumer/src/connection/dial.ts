// Connects to the broker's Unix socket and introduces the consumer. With the ring's addon the
// connection is made natively, since only there can descriptors be received; without it (it has no
// build for this platform, or `transport: 'socket'`) by Node's own socket.

import { connect, Socket } from 'node:net'
import {
  decodeError,
  decodeWelcome,
  encodeHello,
  FabricError,
  type Frame,
  FrameReader,
  FrameType,
  type Hello,
  type Welcome,
} from '@fabric/protocol'
import { connectUnix, RING_ABI_VERSION, RingError } from '@fabric/shm-ring'
import { messageOf } from '../log.js'
import { closeDescriptors } from './descriptors.js'

/** Longest wait for the broker's answer: it makes a ring in between. */
const HANDSHAKE_TIMEOUT_MS = 10_000

export interface Dialled {
  readonly socket: Socket
  readonly welcome: Welcome
  readonly descriptors: readonly number[]
  /** Holds what came behind the answer. */
  readonly frames: FrameReader
}

/** @throws FabricError the broker's own refusal, or FABRIC_BROKER_UNREACHABLE */
export async function dial(path: string, hello: Omit<Hello, 'ringAbi'>): Promise<Dialled> {
  try {
    if (hello.transport === 'socket') return await dialBySocket(path, { ...hello, ringAbi: null })
    return await dialForRing(path, hello)
  } catch (cause) {
    if (cause instanceof FabricError) throw cause
    throw new FabricError(
      'FABRIC_BROKER_UNREACHABLE',
      `no broker answers at unix:${path} (${messageOf(cause)})`,
      { field: 'broker', cause },
    )
  }
}

async function dialForRing(path: string, hello: Omit<Hello, 'ringAbi'>): Promise<Dialled> {
  const connection = await connectUnix({
    path,
    hello: encodeHello({ ...hello, ringAbi: RING_ABI_VERSION }),
    timeoutMs: HANDSHAKE_TIMEOUT_MS,
  }).catch((error: unknown) => {
    if (error instanceof RingError && error.code === 'RING_PLATFORM_UNSUPPORTED') return null
    throw error
  })
  // The hello says that there is no ring here, and the broker says in its answer what that means.
  if (connection === null) return dialBySocket(path, { ...hello, ringAbi: null })
  const { socketFd, reply, descriptors } = connection
  const socket = new Socket({ fd: socketFd })
  try {
    const frames = new FrameReader()
    frames.push(reply)
    return { socket, welcome: welcomeOf(frames.next()), descriptors, frames }
  } catch (refusal) {
    closeDescriptors(descriptors)
    socket.on('error', () => {}).destroy()
    throw refusal
  }
}

async function dialBySocket(path: string, hello: Hello): Promise<Dialled> {
  const socket = connect(path)
  const frames = new FrameReader()
  try {
    socket.write(encodeHello(hello))
    const welcome = welcomeOf(await firstFrame(socket, frames))
    return { socket, welcome, descriptors: [], frames }
  } catch (refusal) {
    socket.on('error', () => {}).destroy()
    throw refusal
  }
}

function firstFrame(socket: Socket, frames: FrameReader): Promise<Frame> {
  return new Promise((resolve, reject) => {
    const finish = (act: () => void) => {
      clearTimeout(timer)
      socket.off('data', onData).off('error', onError).off('close', onClose)
      // Nothing may be lost between this listener and the next.
      socket.pause()
      act()
    }
    const onData = (chunk: Buffer) => {
      try {
        frames.push(chunk)
        const frame = frames.next()
        if (frame !== null) finish(() => resolve(frame))
      } catch (error) {
        finish(() => reject(error))
      }
    }
    const onError = (error: Error) => finish(() => reject(error))
    const onClose = () => finish(() => reject(new Error('it closed the connection')))
    const timer = setTimeout(
      () => finish(() => reject(new Error(`no answer in ${HANDSHAKE_TIMEOUT_MS} ms`))),
      HANDSHAKE_TIMEOUT_MS,
    )
    socket.on('data', onData).on('error', onError).on('close', onClose)
  })
}

function welcomeOf(frame: Frame | null): Welcome {
  if (frame?.type === FrameType.welcome) return decodeWelcome(frame.body)
  if (frame?.type === FrameType.error) throw decodeError(frame.body)
  throw new FabricError('FABRIC_PROTOCOL', 'the broker answered with neither welcome nor error')
}
