// The header of a safetensors file: which tensors stand where. Reads no weights.
//
//   u64 length of the header, then the header as JSON: name -> { dtype, shape, data_offsets }
//   Offsets count from the end of the header.
import { closeSync, openSync, readSync } from 'node:fs'
import { DataType } from './onnx-proto.js'

/** Headers of models that we know are below 1 MiB; more is not a header. */
const HEADER_BYTES_MAX = 64 * 1024 * 1024

const DTYPES: Readonly<Record<string, DataType>> = {
  F32: DataType.float32,
  F16: DataType.float16,
  BF16: DataType.bfloat16,
}

export interface StoredTensor {
  readonly type: DataType
  readonly shape: readonly number[]
  /** Byte offset from the start of the file. */
  readonly offset: number
  readonly byteLength: number
}

interface HeaderEntry {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly data_offsets: readonly [number, number]
}

/** Tensors of float types by name; others (position ids) are left out. */
export function readSafetensorsHeader(path: string): ReadonlyMap<string, StoredTensor> {
  const { headerBytes, json } = readHeader(path)
  const tensors = new Map<string, StoredTensor>()
  for (const [name, entry] of Object.entries(JSON.parse(json) as Record<string, HeaderEntry>)) {
    const type = DTYPES[entry.dtype]
    if (name === '__metadata__' || type === undefined) continue
    const [start, end] = entry.data_offsets
    tensors.set(name, {
      type,
      shape: entry.shape,
      offset: 8 + headerBytes + start,
      byteLength: end - start,
    })
  }
  return tensors
}

function readHeader(path: string): { headerBytes: number; json: string } {
  const fd = openSync(path, 'r')
  try {
    const prefix = Buffer.alloc(8)
    readSync(fd, prefix, 0, 8, 0)
    const headerBytes = Number(prefix.readBigUInt64LE())
    if (headerBytes === 0 || headerBytes > HEADER_BYTES_MAX)
      throw new Error(`${path} is no safetensors file: its header would be ${headerBytes} bytes`)
    const header = Buffer.alloc(headerBytes)
    readSync(fd, header, 0, headerBytes, 8)
    return { headerBytes, json: header.toString('utf8') }
  } finally {
    closeSync(fd)
  }
}
