export { crc32Rows } from './checksum.js'
export { RING_ERROR_CODES, RingError, type RingErrorCode } from './errors.js'
export { gatherRows } from './gather.js'
export { RING_ABI_VERSION, type RingStat, ringSupport } from './native.js'
export type { HugePages, RingPages } from './pages.js'
export { RingReader, RingRecord } from './reader.js'
export {
  type Connection,
  type ConnectOptions,
  connectUnix,
  hardenProcess,
  type PeerCredentials,
  type PeerWatch,
  peerCredentials,
  sendDescriptors,
  watchPeer,
} from './socket.js'
export {
  type ClaimOptions,
  RingClaim,
  type RingHandle,
  RingWriter,
  type RingWriterOptions,
} from './writer.js'
