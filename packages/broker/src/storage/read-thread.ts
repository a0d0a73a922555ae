// The reading thread: a page that has to come from the disk is waited for here, and nowhere else.
import { parentPort, workerData } from 'node:worker_threads'
import { FabricError } from '@fabric/protocol'
import { openEnvironment } from './environment.js'
import { failureOf } from './failure.js'
import type { FromReader, LentItems, Read, Request, StoreSettings } from './messages.js'
import { Reader } from './reader.js'
import { SharedBuffers } from './shared-buffers.js'
import type { LoadedItems } from './store.js'

const port = parentPort!
const tell = (message: FromReader, transfer: ArrayBuffer[] = []) =>
  port.postMessage(message, transfer)

/** A value, and the memory that goes with it instead of being cloned. */
type Answer = readonly [value: unknown, transfer: ArrayBuffer[]]

const owned = (items: LoadedItems | null): Answer =>
  items === null ? [null, []] : [items, [items.sequences.buffer as ArrayBuffer]]

/** Items read and not returned, and memory that waits for the next ones. */
const buffers = new SharedBuffers(32 * 2 ** 20)

function read(reader: Reader, ask: Extract<Read, { kind: 'read' }>): LentItems | null {
  buffers.giveBack(ask.returned)
  let number: number | null = null
  const items = reader.read(ask.job, ask.shape, ask.tokens, ask.maxBytes, (bytes) => {
    const lent = buffers.lend(bytes)
    number = lent.message.number
    return lent.memory
  })
  return items === null ? null : { items, number }
}

function answer(reader: Reader, ask: Exclude<Read, { kind: 'close' }>): Answer {
  switch (ask.kind) {
    case 'read':
      return [read(reader, ask), []]
    case 'find':
      return owned(reader.find(ask.sequence, ask.job))
    case 'countAhead':
      return [reader.countAhead(ask.job, ask.shape, ask.sequence), []]
    case 'forget':
      return [reader.forget(ask.job), []]
    case 'forgetSegments':
      for (const segment of ask.segments) reader.environment.log.forget(segment)
      return [null, []]
    case 'results': {
      const found = reader.results(ask.job, ask.offset, ask.maxBytes)
      if (found !== null) return [found, [found.bytes.buffer as ArrayBuffer]]
      throw new FabricError(
        'FABRIC_RESULTS_GONE',
        `results at offset ${ask.offset} were read and have made room for others`,
      )
    }
  }
}

try {
  const { dataDir, sync } = workerData as StoreSettings
  const environment = openEnvironment(dataDir, { noSync: sync === 'never' })
  const reader = new Reader(environment, (table, key) =>
    tell({ kind: 'damaged', table, key: new Uint8Array(key) }),
  )
  port.on('message', ({ id, ask }: Request<Read>) => {
    if (ask.kind === 'close') {
      environment.log.close()
      environment.root.close().finally(() => {
        tell({ kind: 'answer', id })
        port.close()
      })
      return
    }
    try {
      const [value, transfer] = answer(reader, ask)
      tell({ kind: 'answer', id, value }, transfer)
    } catch (error) {
      tell({ kind: 'answer', id, failure: failureOf(error) })
    }
  })
  tell({ kind: 'opened' })
} catch (error) {
  tell({ kind: 'refused', failure: failureOf(error) })
  port.close()
}
