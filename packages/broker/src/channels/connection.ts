// One consumer's connection, from accept to close: hello within its deadline, credentials, contract,
// transport, welcome; then frames. It owns the socket and the channel; what a frame means is the
// engine's business.
import type { Socket } from 'node:net'
import type { Contract, DeathCause } from '@fabric/core'
import {
  decodeEarlierResults,
  decodeError,
  decodeHello,
  decodeResults,
  decodeTaken,
  type EarlierResults,
  encodeError,
  encodeFrame,
  encodeWelcome,
  FabricError,
  type Frame,
  FrameReader,
  FrameType,
  type Hello,
  PROTOCOL_VERSION,
  type ResultsMessage,
} from '@fabric/protocol'
import {
  type PeerCredentials,
  type PeerWatch,
  peerCredentials,
  RingError,
  type RingWriter,
  ringSupport,
  sendDescriptors,
  watchPeer,
} from '@fabric/shm-ring'
import type { Logger } from 'pino'
import type { Channel } from './channel.js'
import type { RingBudget, Transport } from './ring-budget.js'
import { RingChannel } from './ring-channel.js'
import { SocketChannel } from './socket-channel.js'

/** A consumer as everything but the core sees it. */
export interface ConsumerInfo {
  readonly name: string
  readonly contract: Contract
  readonly pid: number
  readonly uid: number
  readonly host: string
  readonly transportReason: string
}

/** What a connection asks of the broker. */
export interface ConnectionHost {
  readonly rings: RingBudget
  readonly brokerLife: bigint
  readonly leaseTimeoutMs: number
  readonly roundTo: number
  /** Of a consumer that names none. */
  readonly layout: Contract['layout']
  readonly log: Logger
  /** @throws FabricError FABRIC_FORBIDDEN, FABRIC_DRAINING */
  admit(credentials: { readonly uid: number; readonly gid: number }): void
  /** It has said hello; called before anything is made for it. @throws FabricError FABRIC_CONSUMER_LIMIT */
  introduced(connection: Connection): void
  uniqueName(wanted: string): string
  /** @throws FabricError when the core refuses the contract. */
  register(connection: Connection, info: ConsumerInfo): Registration
  /** The consumer can take batches now. */
  ready(consumer: number, warnings: readonly string[]): void
  renew(consumer: number): void
  taken(consumer: number, batch: number): void
  results(consumer: number, message: ResultsMessage): void
  /** Whether results of an earlier life may be of use (S26). */
  readonly takesEarlierResults: boolean
  earlierResults(consumer: number, message: EarlierResults): void
  drain(consumer: number): void
  room(consumer: number, hasRoom: boolean): void
  gone(connection: Connection, consumer: number | null, cause: DeathCause): void
}

export interface Registration {
  readonly consumer: number
  readonly warnings: readonly string[]
}

export const HELLO_DEADLINE_MS = 10_000
const CLOSE_GRACE_MS = 1_000

/** Node keeps the descriptor here, without documenting it; the ring's descriptors need it. */
const descriptorOf = (socket: Socket): number =>
  (socket as unknown as { _handle: { fd: number } | null })._handle?.fd ?? -1

/**
 * Who connected. Without the addon the kernel cannot be asked: the socket then lets in only our own
 * user (and root), because startBroker() refuses to open it to others.
 */
function credentialsOf(socket: Socket): PeerCredentials {
  if (ringSupport().supported) return peerCredentials(descriptorOf(socket))
  return { pid: 0, uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
}

const lost = (cause: RingError) =>
  new FabricError('FABRIC_CONNECTION_LOST', `${cause.message} (${cause.code})`, { cause })

export class Connection {
  readonly #reader = new FrameReader(false)
  readonly #helloTimer: NodeJS.Timeout
  #credentials: PeerCredentials | null = null
  #peer: PeerWatch | null = null
  #consumer: number | null = null
  #channel: Channel | null = null
  #ring: RingWriter | null = null
  #closed = false
  /** The consumer said that all is settled, or the broker closes: no death worth a warning. */
  endsCleanly = false

  constructor(
    readonly socket: Socket,
    readonly host: ConnectionHost,
    helloDeadlineMs = HELLO_DEADLINE_MS,
  ) {
    this.#helloTimer = setTimeout(
      () => this.fail(new FabricError('FABRIC_PROTOCOL', `no hello within ${helloDeadlineMs} ms`)),
      helloDeadlineMs,
    )
    this.#helloTimer.unref()
    socket.on('error', () => {})
    socket.on('close', () => this.#end('connection_closed'))
    socket.on('data', (chunk) => this.#guarded(() => this.#receive(chunk)))
    this.#guarded(() => {
      this.#credentials = credentialsOf(socket)
      host.admit(this.#credentials)
      if (ringSupport().supported)
        this.#peer = watchPeer(descriptorOf(socket), () => this.#peerExited(-1))
    })
  }

  /** -1 when it was closed before it could be asked. */
  get uid(): number {
    return this.#credentials?.uid ?? -1
  }

  get closed(): boolean {
    return this.#closed
  }

  /** @throws when nobody is registered here. */
  get channel(): Channel {
    if (this.#channel === null) throw new Error('bug: a consumer without a channel')
    return this.#channel
  }

  /** Sends the error and closes; the consumer's work is reclaimed. */
  fail(error: FabricError, cause: DeathCause = 'protocol_error'): void {
    if (this.#closed) return
    if (this.socket.writable) this.socket.write(encodeError(error.toBody()))
    this.#end(cause)
    this.close()
  }

  sendDrain(): void {
    if (!this.#closed) this.socket.write(encodeFrame(FrameType.drain))
  }

  /** The broker shuts down. */
  leave(): void {
    this.endsCleanly = true
    this.close()
  }

  /** Closes when what was written has gone, or soon: the peer may have stopped reading. */
  close(): void {
    this.socket.destroySoon()
    setTimeout(() => this.socket.destroy(), CLOSE_GRACE_MS).unref()
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (thrown) {
      const error = thrown instanceof RingError ? lost(thrown) : thrown
      if (!(error instanceof FabricError)) throw error
      this.host.log.warn({ code: error.code, field: error.field }, `connection: ${error.message}`)
      this.fail(error, error === thrown ? 'protocol_error' : 'connection_closed')
    }
  }

  #receive(chunk: Uint8Array): void {
    if (this.#closed) return
    this.#reader.push(chunk)
    for (let frame = this.#reader.next(); frame !== null; frame = this.#reader.next()) {
      if (this.#consumer === null) this.#introduce(frame)
      else this.#handle(this.#consumer, frame)
      if (this.#closed) return
    }
  }

  #introduce(frame: Frame): void {
    if (frame.type !== FrameType.hello)
      throw new FabricError('FABRIC_PROTOCOL', 'the first frame is not hello', { field: 'type' })
    const hello = decodeHello(frame.body)
    const contract = this.#contract(hello)
    this.host.introduced(this)
    const transport = this.host.rings.open(contract, hello.transport, hello.ringAbi)
    this.#ring = transport.ring
    const info = {
      name: this.host.uniqueName(hello.name),
      contract,
      pid: this.#credentials?.pid ?? 0,
      uid: this.uid,
      host: hello.host,
      transportReason: transport.reason,
    }
    const { consumer, warnings } = this.host.register(this, info)
    clearTimeout(this.#helloTimer)
    this.#consumer = consumer
    this.#reader.trusted = true
    // Before the welcome, which fails when the peer has gone: whoever is registered has a channel.
    this.#openChannel(consumer, transport.ring)
    this.#welcome(info, transport, warnings)
    this.host.ready(consumer, warnings)
  }

  #contract(hello: Hello): Contract {
    const { layout = this.host.layout, roundTo = this.host.roundTo } = hello.contract
    const { maxInFlight = 1 } = hello.contract
    return { ...hello.contract, layout, roundTo, maxInFlight }
  }

  #welcome(info: ConsumerInfo, transport: Transport, warnings: readonly string[]): void {
    const { leaseTimeoutMs, brokerLife, takesEarlierResults } = this.host
    const { ring } = transport
    const message = encodeWelcome({
      protocol: PROTOCOL_VERSION,
      name: info.name,
      brokerLife: brokerLife.toString(16).padStart(16, '0'),
      earlierResults: takesEarlierResults,
      leaseTimeoutMs,
      renewEveryMs: Math.max(1, Math.floor(leaseTimeoutMs / 4)),
      layout: info.contract.layout,
      roundTo: info.contract.roundTo,
      maxInFlight: info.contract.maxInFlight,
      transport: ring === null ? 'socket' : 'ring',
      transportReason: transport.reason,
      ring:
        ring === null
          ? null
          : { capacityBytes: ring.capacityBytes, pageSizeBytes: ring.pageSizeBytes },
      warnings: [...warnings],
    })
    if (ring === null) {
      this.socket.write(message)
      return
    }
    sendDescriptors(descriptorOf(this.socket), message, ring.descriptors())
    ring.closePeerDescriptors()
  }

  #openChannel(consumer: number, ring: RingWriter | null): void {
    const onRoom = (): void => {
      if (!this.#closed) this.host.room(consumer, this.channel.hasRoom)
    }
    const socketChannel = new SocketChannel(this.socket, onRoom)
    this.#channel = ring === null ? socketChannel : new RingChannel(ring, socketChannel, onRoom)
  }

  #handle(consumer: number, frame: Frame): void {
    switch (frame.type) {
      case FrameType.renew:
        this.host.renew(consumer)
        break
      case FrameType.taken:
        this.host.taken(consumer, decodeTaken(frame.body))
        break
      case FrameType.results:
        this.host.results(consumer, decodeResults(frame.body))
        break
      case FrameType.earlierResults:
        this.host.earlierResults(consumer, decodeEarlierResults(frame.body))
        break
      case FrameType.drain:
        this.host.drain(consumer)
        break
      case FrameType.bye:
        this.endsCleanly = true
        break
      case FrameType.error:
        this.#peerFailed(decodeError(frame.body))
        break
      default:
        throw new FabricError('FABRIC_PROTOCOL', `frame type ${frame.type} is the broker’s`)
    }
  }

  /**
   * The process has ended. Mostly the socket ends with it; but a child that it forked without exec
   * holds the socket open and will never speak. What the dead has sent is read first, and that was
   * all when a whole turn of the loop brought nothing more.
   */
  #peerExited(bytesSeen: number): void {
    if (this.#closed) return
    const { bytesRead } = this.socket
    if (bytesRead !== bytesSeen) {
      setImmediate(() => this.#peerExited(bytesRead))
      return
    }
    this.#end('connection_closed')
    this.socket.destroy()
  }

  /** Whoever sends an error closes after it. */
  #peerFailed(error: FabricError): void {
    this.host.log.warn({ error: error.toBody() }, 'a consumer reports an error')
    this.#end('protocol_error')
    this.close()
  }

  #end(cause: DeathCause): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#helloTimer)
    this.#peer?.close()
    // First, so that the ring's last numbers can still be read.
    this.host.gone(this, this.#consumer, cause)
    if (this.#channel !== null) this.#channel.close()
    else this.#ring?.close()
    if (this.#ring !== null) this.host.rings.close(this.#ring)
  }
}
