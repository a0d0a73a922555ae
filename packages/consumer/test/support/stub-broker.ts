// The broker's side of the protocol and nothing else: it sends the batches a test gives it, by a real
// ring or the socket, and remembers every frame, so that a test can wait for what it expects.
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  decodeEarlierResults,
  decodeError,
  decodeHello,
  decodeResults,
  decodeTaken,
  type EarlierResults,
  type ErrorBody,
  encodeError,
  encodeFrame,
  encodeWelcome,
  FrameReader,
  FrameType,
  type Hello,
  type ResultsMessage,
} from '@fabric/protocol'
import { type RingClaim, RingWriter, sendDescriptors } from '@fabric/shm-ring'
import { encodeBatch, type TestBatch } from './batches.js'
import { Changes } from './changes.js'

export interface StubOptions {
  readonly transport?: 'ring' | 'socket'
  readonly renewEveryMs?: number
  readonly leaseTimeoutMs?: number
  readonly brokerLife?: bigint
  /** Answers every hello with this error. */
  readonly refusal?: ErrorBody
  readonly maxInFlight?: number
  readonly earlierResults?: boolean
}

const NO_RENEWALS_MS = 1_000_000

export class StubBroker {
  readonly #folder = mkdtempSync(join(tmpdir(), 'stub-broker-'))
  readonly path = join(this.#folder, 'broker.sock')
  readonly address = `unix:${this.path}`
  readonly connections: StubConnection[] = []
  /** Hellos that were refused. */
  refused = 0
  readonly #changes = new Changes()
  #server: Server | null = null
  options: StubOptions

  constructor(options: StubOptions = {}) {
    this.options = options
  }

  static async start(options: StubOptions = {}): Promise<StubBroker> {
    const broker = new StubBroker(options)
    await broker.listen()
    return broker
  }

  listen(): Promise<void> {
    this.#server = createServer((socket) => {
      this.connections.push(new StubConnection(socket, this, this.#changes))
    })
    return new Promise((resolve) => this.#server?.listen(this.path, resolve))
  }

  /** Closes the listener and every connection, as a broker does that ends. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve))
    for (const connection of this.connections) connection.close()
    await closed
  }

  async dispose(): Promise<void> {
    if (this.#server?.listening) await this.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  until(condition: () => boolean): Promise<void> {
    return this.#changes.until(condition)
  }

  /** The nth consumer that has registered, counted from 0. */
  async registered(n = 0): Promise<StubConnection> {
    await this.until(() => this.connections.filter((c) => c.hello !== null).length > n)
    return this.connections.filter((c) => c.hello !== null)[n]
  }
}

export class StubConnection {
  hello: Hello | null = null
  renewals = 0
  readonly taken: number[] = []
  readonly results: ResultsMessage[] = []
  readonly earlier: EarlierResults[] = []
  readonly errors: ErrorBody[] = []
  hasDrained = false
  hasSaidBye = false
  isClosed = false
  readonly claims: RingClaim[] = []
  readonly #frames = new FrameReader()
  readonly #socket: Socket
  readonly #broker: StubBroker
  readonly #changes: Changes
  #ring: RingWriter | null = null

  constructor(socket: Socket, broker: StubBroker, changes: Changes) {
    this.#socket = socket
    this.#broker = broker
    this.#changes = changes
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      this.#frames.push(chunk)
      for (let frame = this.#frames.next(); frame !== null; frame = this.#frames.next())
        this.#read(frame.type, frame.body)
      changes.happened()
    })
    socket.on('close', () => {
      this.isClosed = true
      this.#ring?.close()
      changes.happened()
    })
  }

  /** Sends by the ring, if there is one, else by the socket. */
  send(batch: TestBatch): void {
    if (this.#ring === null) this.sendBySocket(batch)
    else this.sendByRing(new Uint8Array(this.#encoded(batch)), batch.batch ?? 1)
  }

  sendBySocket(batch: TestBatch): void {
    this.sendFrame(encodeFrame(FrameType.batch, new Uint8Array(this.#encoded(batch))))
  }

  sendByRing(bytes: Uint8Array, sequence: number): void {
    const claim = this.#ring?.claim(bytes.byteLength)
    if (!claim || !this.#ring) throw new Error('the ring is full, or there is none')
    new Uint8Array(this.#ring.memory, claim.byteOffset, bytes.byteLength).set(bytes)
    this.claims.push(claim)
    claim.commit(sequence)
  }

  sendFrame(frame: Uint8Array): void {
    this.#socket.write(frame)
  }

  endWith(frame: Uint8Array): void {
    this.#socket.end(frame)
  }

  get ring(): RingWriter | null {
    return this.#ring
  }

  close(): void {
    this.#socket.destroy()
  }

  until(condition: () => boolean): Promise<void> {
    return this.#changes.until(condition)
  }

  /** How items of a batch ended, by place, once as many have. */
  async outcomes(batch: number, items: number): Promise<Map<number, Settled>> {
    const settled = new Map<number, Settled>()
    await this.until(() => {
      for (const message of this.results.filter((m) => m.batch === batch))
        for (let i = 0; i < message.count; i++) settled.set(message.index[i], read(message, i))
      return settled.size >= items
    })
    return settled
  }

  #encoded(batch: TestBatch): ArrayBuffer {
    return encodeBatch({ brokerLife: this.#broker.options.brokerLife ?? 1n, ...batch })
  }

  #read(type: FrameType, body: Uint8Array): void {
    if (type === FrameType.hello) this.#welcome(decodeHello(body))
    else if (type === FrameType.renew) this.renewals += 1
    else if (type === FrameType.taken) this.taken.push(decodeTaken(body))
    else if (type === FrameType.results) this.results.push(decodeResults(body.slice()))
    else if (type === FrameType.earlierResults) this.earlier.push(decodeEarlierResults(body))
    else if (type === FrameType.drain) this.hasDrained = true
    else if (type === FrameType.error) this.errors.push(decodeError(body).toBody())
    else if (type === FrameType.bye) {
      this.hasSaidBye = true
      this.#socket.end()
    }
  }

  #welcome(hello: Hello): void {
    const { refusal, transport, renewEveryMs, leaseTimeoutMs, brokerLife, maxInFlight } =
      this.#broker.options
    if (refusal !== undefined) {
      this.#broker.refused += 1
      this.endWith(encodeError(refusal))
      return
    }
    const hasRing = transport === 'ring' && hello.transport !== 'socket'
    if (hasRing) this.#ring = RingWriter.create({ capacityBytes: 4 << 20, hugePages: 'off' })
    const welcome = encodeWelcome({
      protocol: 1,
      name: hello.name,
      brokerLife: (brokerLife ?? 1n).toString(16).padStart(16, '0'),
      earlierResults: this.#broker.options.earlierResults,
      leaseTimeoutMs: leaseTimeoutMs ?? 30_000,
      renewEveryMs: renewEveryMs ?? NO_RENEWALS_MS,
      layout: hello.contract.layout ?? 'padded',
      roundTo: 8,
      maxInFlight: maxInFlight ?? hello.contract.maxInFlight ?? 1,
      transport: hasRing ? 'ring' : 'socket',
      transportReason: hasRing ? 'same host' : 'as the test wants it',
      ring: hasRing ? { capacityBytes: 4 << 20, pageSizeBytes: 4096 } : null,
      warnings: [],
    })
    if (this.#ring === null) this.#socket.write(welcome)
    else {
      const { fd } = (this.#socket as unknown as { _handle: { fd: number } })._handle
      sendDescriptors(fd, welcome, this.#ring.descriptors())
      this.#ring.closePeerDescriptors()
    }
    this.hello = hello
  }
}

export interface Settled {
  readonly outcome: number
  readonly encoding: number
  readonly value: Uint8Array
  readonly truncatedTo: number
}

const read = (message: ResultsMessage, i: number): Settled => ({
  outcome: message.outcome[i],
  encoding: message.encoding[i],
  value: message.value(i),
  truncatedTo: message.truncatedTo[i],
})

export const text = ({ value }: Settled): string => new TextDecoder().decode(value)
export const json = (settled: Settled): unknown => JSON.parse(text(settled))
export const floats = ({ value }: Settled): number[] =>
  Array.from(new Float32Array(value.slice().buffer))
