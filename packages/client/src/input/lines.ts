// Reads an input file as lines, in blocks as they come from the disk: never the whole file.
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { FabricError } from '@fabric/protocol'
import { LineSplitter } from '../lines.js'

export interface RawLine {
  /** From 1, as editors count. */
  readonly number: number
  /** Null when the line is longer than LINE_BYTES_MAX. */
  readonly text: string | null
}

/** Longer than any item a broker takes (maxBodyBytes); bounds what one line can make us hold. */
export const LINE_BYTES_MAX = 64 << 20
const BLOCK_BYTES = 256 << 10

/** Standard input under the name that the field's tools give it. */
export const STDIN = '-'

export const unreadable = (path: string, cause: unknown) => {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new FabricError('FABRIC_INPUT', `input ${path} cannot be read: ${why}`, {
    field: 'input',
    cause,
  })
}

const streamOf = (path: string): AsyncIterable<Buffer> =>
  path === STDIN ? process.stdin : createReadStream(path, { highWaterMark: BLOCK_BYTES })

/** Lines that are blank are no items; they keep their numbers. @throws FabricError FABRIC_INPUT */
export async function* readLines(path: string): AsyncGenerator<RawLine[]> {
  const splitter = new LineSplitter({ maxBytes: LINE_BYTES_MAX })
  let number = 0
  const kept = (texts: readonly (string | null)[]): RawLine[] => {
    const lines: RawLine[] = []
    for (const text of texts) {
      number += 1
      const whole = number === 1 && text !== null ? text.replace(/^\ufeff/, '') : text
      if (whole === null || whole.trim() !== '') lines.push({ number, text: whole })
    }
    return lines
  }
  try {
    for await (const chunk of streamOf(path)) {
      const lines = kept(splitter.push(chunk))
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    throw unreadable(path, error)
  }
  const last = splitter.end()
  if (last !== undefined) yield kept([last])
}

/** How many lines that are not blank a file has: a pass that looks at bytes only. */
export async function countLines(path: string, signal?: AbortSignal): Promise<number> {
  const file = await open(path).catch((error) => {
    throw unreadable(path, error)
  })
  const block = Buffer.allocUnsafe(1 << 20)
  let count = 0
  let isBlank = true
  try {
    for (;;) {
      signal?.throwIfAborted()
      const { bytesRead } = await file.read(block, 0, block.length)
      if (bytesRead === 0) break
      for (let i = 0; i < bytesRead; i++) {
        const byte = block[i]
        if (byte === 10) {
          if (!isBlank) count += 1
          isBlank = true
        } else if (byte > 32) {
          isBlank = false
          // The rest of the line says nothing new.
          const end = block.indexOf(10, i)
          i = (end < 0 || end >= bytesRead ? bytesRead : end) - 1
        }
      }
    }
    return isBlank ? count : count + 1
  } finally {
    await file.close()
  }
}
