// Batches as frames on the consumer's connection. The kernel's buffer is the queue; when it is full
// the core is told that there is no room, and again when it has drained.
import type { Socket } from 'node:net'
import { FRAME_HEADER_BYTES, FrameType, writeFrameHeader } from '@fabric/protocol'
import type { BatchSpace, Channel, OnRoom, RingState } from './channel.js'

export class SocketChannel implements Channel {
  readonly transport = 'socket'
  readonly viaSocket = 0
  hasRoom = true
  readonly #onDrain = () => this.#setRoom(true)

  constructor(
    readonly socket: Socket,
    readonly onRoom: OnRoom,
  ) {
    socket.on('drain', this.#onDrain)
  }

  claim(byteLength: number): BatchSpace {
    // Not zeroed: the assembly writes every byte of it.
    const frame = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + byteLength)
    return {
      memory: frame.buffer as ArrayBuffer,
      byteOffset: FRAME_HEADER_BYTES,
      commit: () => this.#send(frame),
      abort: () => {},
    }
  }

  ring(): RingState | null {
    return null
  }

  close(): void {
    this.socket.off('drain', this.#onDrain)
  }

  #send(frame: Buffer): void {
    writeFrameHeader(frame, FrameType.batch, frame.byteLength)
    if (!this.socket.write(frame)) this.#setRoom(false)
  }

  #setRoom(hasRoom: boolean): void {
    if (this.hasRoom === hasRoom) return
    this.hasRoom = hasRoom
    this.onRoom()
  }
}
