// A new index gets its format, and the key of its digests and of its log.
import { randomBytes } from 'node:crypto'
import type { Environment } from './environment.js'
import { DIGEST_KEY_BYTES } from './id-digest.js'
import { FORMAT_VERSION, META_FORMAT, META_HASH_KEY } from './layout.js'

/** @returns the key, which is made once. */
export function prepareStore({ root, tables }: Environment): Buffer {
  if (tables.meta.getBinary(META_FORMAT) === undefined)
    root.transactionSync(() => {
      const version = Buffer.alloc(4)
      version.writeUInt32LE(FORMAT_VERSION)
      tables.meta.put(META_FORMAT, version)
      tables.meta.put(META_HASH_KEY, randomBytes(DIGEST_KEY_BYTES))
    })
  return Buffer.from(tables.meta.getBinary(META_HASH_KEY)!)
}
