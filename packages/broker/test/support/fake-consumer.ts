// A consumer reduced to the protocol: what a test does not tell it to do it does not do. Batches come
// as they stand in the ring or the frame.
import net from 'node:net'
import {
  type BatchView,
  decodeError,
  decodeWelcome,
  Encoding,
  encodeEarlierResults,
  encodeFrame,
  encodeHello,
  encodeResults,
  encodeTaken,
  type FabricError,
  FRAME_HEADER_BYTES,
  FrameReader,
  FrameType,
  type Hello,
  type ItemResult,
  Outcome,
  openBatch,
  type Welcome,
} from '@fabric/protocol'
import { connectUnix, RING_ABI_VERSION, RingReader, type RingRecord } from '@fabric/shm-ring'
import { onTestFinished } from 'vitest'
import { until } from './until.ts'

export interface FakeBatch {
  readonly view: BatchView
  readonly bytes: Uint8Array
  readonly via: 'ring' | 'socket'
  readonly ids: readonly string[]
  release(): void
}

export type FakeHello = Partial<Omit<Hello, 'contract'>> & { contract?: Partial<Hello['contract']> }

export const hello = (change: FakeHello = {}): Hello => ({
  protocol: 1,
  ringAbi: RING_ABI_VERSION,
  name: 'gpu0',
  transport: 'auto',
  pid: process.pid,
  host: 'test',
  ...change,
  contract: { batchSize: 8, tokens: 64, inputLength: 64, model: 0, ...change.contract },
})

function resultsOf(
  { view }: FakeBatch,
  result: (index: number) => Partial<ItemResult> = () => ({}),
  brokerLife = view.brokerLife,
): Uint8Array {
  const results = Array.from({ length: view.size }, (_, index) => ({
    index,
    outcome: Outcome.completed as Outcome,
    encoding: Encoding.float32 as Encoding,
    value: new Uint8Array(new Float32Array([view.lengths[index]]).buffer),
    truncatedTo: 0,
    ...result(index),
  }))
  return encodeResults(view.batch, brokerLife, results)
}

export class FakeConsumer {
  readonly batches: FakeBatch[] = []
  error: FabricError | null = null
  drained = false
  closed = false
  readonly #reader = new FrameReader()

  private constructor(
    readonly socket: net.Socket,
    readonly welcome: Welcome,
    readonly ring: RingReader | null,
  ) {
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      this.closed = true
    })
    ring?.onReadable(() => this.#readRing(ring))
  }

  /** @throws FabricError that the broker answered with. */
  static async connect(
    path: string,
    change: FakeHello = {},
    /** What a hostile consumer does with the ring's descriptors. */
    tamper: (descriptors: readonly number[]) => void = () => {},
  ): Promise<FakeConsumer> {
    const { socketFd, reply, descriptors } = await connectUnix({
      path,
      hello: encodeHello(hello(change)),
      timeoutMs: 10_000,
    })
    const socket = new net.Socket({ fd: socketFd, readable: true, writable: true })
    const body = reply.subarray(FRAME_HEADER_BYTES)
    if (reply[4] === FrameType.error) {
      socket.destroy()
      throw decodeError(body)
    }
    tamper(descriptors)
    const ring = descriptors.length > 0 ? RingReader.attach(descriptors) : null
    const consumer = new FakeConsumer(socket, decodeWelcome(body), ring)
    onTestFinished(() => consumer.close())
    return consumer
  }

  nextBatch(): Promise<FakeBatch> {
    return until(() => this.batches.shift() ?? null)
  }

  send(type: FrameType, ...parts: Uint8Array[]): void {
    this.socket.write(encodeFrame(type, ...parts))
  }

  renew(): void {
    this.send(FrameType.renew)
  }

  take(batch: FakeBatch): void {
    this.socket.write(encodeTaken(batch.view.batch))
  }

  /** Settles every item of the batch; the default is a row with its length. */
  settle(
    batch: FakeBatch,
    result: (index: number) => Partial<ItemResult> = () => ({}),
    brokerLife = batch.view.brokerLife,
  ): void {
    this.send(FrameType.results, resultsOf(batch, result, brokerLife))
    batch.release()
  }

  /** The same for a padded batch of another life of the broker, with its items beside the results. */
  settleEarlier({ view, ...batch }: FakeBatch): void {
    const { lengths, paddedLength, inputIds } = view
    const rows = Array.from(lengths, (length, i) =>
      inputIds.subarray(i * paddedLength, i * paddedLength + length),
    )
    const inputs = {
      model: view.model,
      lengths,
      idEnds: view.idEnds,
      ids: view.ids,
      payloadEnds: new Uint32Array(view.size),
      payloads: new Uint8Array(0),
      tokens: Int32Array.from(rows.flatMap((row) => [...row])),
    }
    const results = resultsOf({ view, ...batch })
    this.send(FrameType.earlierResults, encodeEarlierResults(results, inputs))
  }

  /** Takes and settles whatever comes until `done` says so. */
  async work(done: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await done())) {
      const batch = this.batches.shift()
      if (batch === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 1))
        continue
      }
      this.take(batch)
      this.settle(batch)
    }
  }

  close(): void {
    this.ring?.close()
    this.socket.destroy()
  }

  #receive(chunk: Uint8Array): void {
    this.#reader.push(chunk)
    for (let frame = this.#reader.next(); frame !== null; frame = this.#reader.next()) {
      if (frame.type === FrameType.batch) this.#addBatch(frame.body.slice().buffer, 'socket', null)
      else if (frame.type === FrameType.error) this.error = decodeError(frame.body)
      else if (frame.type === FrameType.drain) this.drained = true
    }
  }

  #readRing(ring: RingReader): void {
    for (let record = ring.next(); record !== null; record = ring.next())
      this.#addBatch(record.payload, 'ring', record)
  }

  #addBatch(buffer: ArrayBuffer, via: FakeBatch['via'], record: RingRecord | null): void {
    const view = openBatch(buffer)
    const text = new TextDecoder()
    const starts = [0, ...view.idEnds]
    const ids = Array.from(view.idEnds, (end, i) => text.decode(view.ids.slice(starts[i], end)))
    const bytes = new Uint8Array(buffer).slice()
    this.batches.push({ view, bytes, via, ids, release: () => record?.release() })
  }
}
