// A new index gets its format, and the key of its digests and of its log.
import { randomBytes } from 'node:crypto'
import { FabricError } from '@fabric/protocol'
import type { Environment } from './environment.js'
import { DIGEST_KEY_BYTES } from './id-digest.js'
import { FORMAT_VERSION, META_FORMAT, META_HASH_KEY } from './layout.js'
import { SEGMENT_HEADER_BYTES, segmentsIn } from './segment-file.js'

/**
 * @returns the key, which is made once.
 * @throws FabricError FABRIC_STORE_DAMAGED where there is a log without its index
 */
export function prepareStore({ root, tables, path, dataDir }: Environment): Buffer {
  if (tables.meta.getBinary(META_FORMAT) === undefined) {
    if (segmentsIn(dataDir).some(({ bytes }) => bytes > SEGMENT_HEADER_BYTES))
      throw new FabricError(
        'FABRIC_STORE_DAMAGED',
        `${dataDir} holds segments of a log and no index for them: restore ${path} from the same copy, or start with another --data-dir`,
      )
    root.transactionSync(() => {
      const version = Buffer.alloc(4)
      version.writeUInt32LE(FORMAT_VERSION)
      tables.meta.put(META_FORMAT, version)
      tables.meta.put(META_HASH_KEY, randomBytes(DIGEST_KEY_BYTES))
    })
  }
  return Buffer.from(tables.meta.getBinary(META_HASH_KEY)!)
}
