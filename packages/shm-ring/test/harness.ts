/** Two sides of a ring over a real Unix socket, in one process or in two. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { connectUnix, RingError, RingReader, RingWriter, sendDescriptors } from '../dist/index.js'

export const MIB = 1 << 20

/** A folder for one test's socket. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'shm-ring-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function createWriter(
  options: Partial<Parameters<typeof RingWriter.create>[0]> = {},
): RingWriter {
  const writer = RingWriter.create({ capacityBytes: 4 * MIB, ...options })
  onTestFinished(() => writer.close())
  return writer
}

export function frame(text = ''): Buffer {
  const bytes = Buffer.alloc(4 + text.length)
  bytes.writeUInt32LE(bytes.length)
  bytes.write(text, 4)
  return bytes
}

export function descriptorOf(socket: net.Socket): number {
  return (socket as unknown as { _handle: { fd: number } })._handle.fd
}

/** Serves the ring to the first who says hello. */
export async function serve(writer: RingWriter): Promise<string> {
  const path = join(temporaryFolder(), 'broker.sock')
  const server = net.createServer((socket) => {
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    socket.once('data', () => {
      sendDescriptors(descriptorOf(socket), frame('welcome'), writer.descriptors())
      writer.closePeerDescriptors()
    })
  })
  server.listen(path)
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return path
}

export async function attach(path: string): Promise<RingReader> {
  const connection = await connectUnix({ path, hello: Buffer.from('hi'), timeoutMs: 10_000 })
  const socket = new net.Socket({ fd: connection.socketFd })
  socket.on('error', () => {})
  const reader = RingReader.attach(connection.descriptors)
  onTestFinished(() => {
    reader.close()
    socket.destroy()
  })
  return reader
}

export async function pair(
  options?: Parameters<typeof createWriter>[0],
): Promise<{ writer: RingWriter; reader: RingReader }> {
  const writer = createWriter(options)
  return { writer, reader: await attach(await serve(writer)) }
}

/** Claims, fills every byte with `fill`, commits. */
export function put(writer: RingWriter, sequence: number, byteLength: number, fill: number): void {
  const claim = writer.claim(byteLength)
  if (!claim) throw new Error('the ring is full')
  new Uint8Array(writer.memory, claim.byteOffset, byteLength).fill(fill)
  claim.commit(sequence)
}

export function startChild(name: string, args: string[]): ChildProcess {
  const script = fileURLToPath(new URL(`children/${name}.mjs`, import.meta.url))
  const child = fork(script, args, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** The next message of the child; fails if it ends instead. */
export function message<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null, signal: string | null) => {
      reject(new Error(`the child ended: ${code ?? signal}`))
    }
    child.once('exit', onExit)
    child.once('message', (value) => {
      child.off('exit', onExit)
      resolve(value as T)
    })
  })
}

function number(file: string, pattern: RegExp): number {
  try {
    return Number(pattern.exec(readFileSync(file, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0 // a process that ended meanwhile
  }
}

/**
 * Bytes of 2 MiB pages that are in use though no living process maps them. Not simply what the pool
 * had before: other tests use the pool at the same time.
 */
export function orphanedHugeBytes(): number {
  const total = number('/proc/meminfo', /HugePages_Total:\s+(\d+)/)
  const free = number('/proc/meminfo', /HugePages_Free:\s+(\d+)/)
  let mapped = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    mapped += number(`/proc/${pid}/status`, /HugetlbPages:\s+(\d+)/) * 1024
  }
  return Math.max(0, (total - free) * 2 * MIB - mapped)
}

export function ownHugeBytes(): number {
  return number('/proc/self/status', /HugetlbPages:\s+(\d+)/) * 1024
}

/** The code of the ring's error, or words that are none. */
export function codeOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (error instanceof RingError) return error.code
    throw error
  }
  return 'nothing thrown'
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
