// The items whose records an earlier run left: they are not submitted again. About 30 bytes each.
import { crc32 } from 'node:zlib'
import type { ItemLine } from '../input/parse.js'
import { encodeItem } from '../submit/item.js'
import { uint32Column } from './column.js'
import { IdIndex } from './id-index.js'

/** 'conflict': its id came before in this input, with another body. */
export type Standing = 'new' | 'kept' | 'conflict'

export class KeptItems {
  readonly #ids = new IdIndex()
  /** Checksum of the first line of the id in this run: the broker is not asked about these. */
  readonly #bodies = uint32Column()
  readonly #seen = uint32Column()

  add(id: string): void {
    this.#ids.add(id, this.#ids.size)
  }

  standing(item: ItemLine): Standing {
    const index = this.#ids.size === 0 ? -1 : this.#ids.get(item.id)
    if (index < 0) return 'new'
    const body = crc32(encodeItem(item))
    if (this.#seen.get(index) === 1) {
      return this.#bodies.get(index) === body ? 'kept' : 'conflict'
    }
    this.#seen.set(index, 1)
    this.#bodies.set(index, body)
    return 'kept'
  }
}
