// The id index by itself: runs of several levels, merges that take many transactions, restarts and
// aborts in the middle of them.
import { SUBMIT_ACCEPTED, SUBMIT_CONFLICT, SUBMIT_DUPLICATE } from '@fabric/core'
import { describe, expect, test } from 'vitest'
import { openEnvironment } from '../../src/storage/environment.ts'
import { IdDigest } from '../../src/storage/id-digest.ts'
import { IdIndex } from '../../src/storage/id-index.ts'
import {
  decodePage,
  ENTRY_WORDS,
  encodePage,
  Filter,
  findInPage,
} from '../../src/storage/id-run.ts'
import { sorted } from '../../src/storage/id-sort.ts'
import { checkStore } from '../../src/storage/verify.ts'
import { folderInMemory } from './support/folder.ts'
import { blockOf, columnsOf, item } from './support/items.ts'

const KEY = Buffer.from('0123456789abcdef')
const RECENT_MAX = 512
const GROUP = 256

const columns = (first: number, count: number, length = 1) =>
  columnsOf(
    blockOf(
      1,
      Array.from({ length: count }, (_, i) => item(`id-${first + i}`, length)),
    ),
    Float64Array.from({ length: count }, (_, i) => first + i),
  )

describe('ids on disk', () => {
  test('an id is known for ever, whatever level its run has come to', async () => {
    const environment = openEnvironment(folderInMemory())
    const { root, tables } = environment
    const fail = () => {
      throw new Error('damaged')
    }
    const open = () => new IdIndex(tables.ids, tables.filters, KEY, fail, RECENT_MAX)
    let index = open()
    let count = 0
    const levels = new Set<number>()
    // 8 x 8 x 512 ids make a run of level 3, which takes 8 transactions; and some more.
    while (count < 36_000) {
      const first = count + 1
      const { codes, entries } = index.admit({ ...columns(first, GROUP), job: 1 })
      expect(codes.every((code) => code === SUBMIT_ACCEPTED)).toBe(true)
      root.transactionSync(() => {
        index.store(1, entries)
        index.work()
      })
      count += GROUP
      if (count % (GROUP * 37) === 0) index = open()
      if (count % (GROUP * 41) === 0) {
        // A merge step that was taken back is taken again.
        expect(() =>
          root.transactionSync(() => {
            index.work()
            throw new Error('aborted')
          }),
        ).toThrow('aborted')
        index.forget()
      }
    }
    index.lookup(columns(1, 1))
    for (let rounds = 0; index.hasWork && rounds < 1000; rounds++)
      root.transactionSync(() => {
        index.work()
      })
    expect(index.hasWork).toBe(false)
    for (const key of tables.filters.getKeys({})) levels.add(key[4])
    expect(Math.max(...levels)).toBe(3)
    for (const each of [index, open()]) {
      for (let first = 1; first <= count; first += 1000) {
        const some = Math.min(1000, count + 1 - first)
        const same = each.lookup(columns(first, some))
        expect(same.every((code) => code === SUBMIT_DUPLICATE)).toBe(true)
      }
      const other = each.lookup(columns(100, 500, 2))
      expect(other.every((code) => code === SUBMIT_CONFLICT)).toBe(true)
      const unknown = each.lookup(columns(count + 1, 1000))
      expect(unknown.every((code) => code === SUBMIT_ACCEPTED)).toBe(true)
    }
    await root.close()
  })

  test.each([1, 2, 3, 4])(
    'a flush broken off after %i transactions is begun anew, and each id is known all the while',
    async (transactions) => {
      const environment = openEnvironment(folderInMemory())
      const { root, tables } = environment
      const fail = () => {
        throw new Error('damaged')
      }
      const open = () => new IdIndex(tables.ids, tables.filters, KEY, fail, RECENT_MAX)
      // 9,600 ids are 19 pages, in three pieces; 600 pages of level 0 go in two more.
      const RECENT_MAX = 9_600
      const group = 16
      let index = open()
      let count = 0
      // With a page stored, or nothing, a transaction does one step.
      const work = () => root.transactionSync(() => index.work())
      const add = (groups: number) => {
        for (let i = 0; i < groups; i++) {
          const { codes, entries } = index.admit(columns(count + 1, group))
          expect(codes.every((code) => code === SUBMIT_ACCEPTED)).toBe(true)
          root.transactionSync(() => {
            index.store(1, entries)
            index.work()
          })
          count += group
        }
      }
      // A hundred of each thousand: each page of the run has some of them.
      const knowsAll = () => {
        for (let first = 1; first < count; first += 1000)
          expect(index.lookup(columns(first, 100)).every((code) => code === SUBMIT_DUPLICATE)).toBe(
            true,
          )
        expect(index.lookup(columns(count + 1, 50))).toEqual(new Uint8Array(50))
      }
      add(RECENT_MAX / group)
      // The last of them has done the first step.
      for (let i = 1; i < transactions; i++) {
        work()
        knowsAll()
      }
      index = open()
      knowsAll()
      add(RECENT_MAX / group)
      for (let rounds = 0; index.hasWork && rounds < 100; rounds++) {
        work()
        knowsAll()
      }
      expect(index.hasWork).toBe(false)
      index = open()
      knowsAll()
      const levels = Array.from(tables.filters.getKeys({}), (key) => key[4])
      expect(levels).toEqual(transactions < 3 ? [1] : [1, 1])
      const found = checkStore(environment).problems.filter((text) => !text.endsWith('no job 1'))
      expect(found).toEqual([])
      await root.close()
    },
  )

  test('digests are those of the format, whatever the length of the id', () => {
    const digest = new IdDigest(KEY)
    const of = (text: string) => {
      const bytes = Buffer.from(text)
      digest.digest(bytes, 0, bytes.length)
      return Buffer.from(new Uint8Array(digest.words.buffer)).toString('hex')
    }
    const seen = ['', 'a', 'abc', 'abcd', 'abcde', 'item-0000000001', 'item-0000000002'].map(of)
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toMatchInlineSnapshot(`
      [
        "d7a6afc0f37f3224aec3b12ae6537d68",
        "3bb0ad9dad41f76388b07b1850770393",
        "ade5c1fe197a642d32def5b82a3e23e9",
        "39e18a5f4112591be73af17c917501bc",
        "f934c8dc766ab6bc7df2f5ec8183e7d1",
        "16f652a28808396338b396a954ff491e",
        "b866293098b8814c16b4273cba836054",
      ]
    `)
  })

  test('a page gives back its entries, and refuses a bit that turned', () => {
    const entries = Uint32Array.from({ length: 5 * ENTRY_WORDS }, (_, i) => (i * 2654435761) >>> 0)
    const page = encodePage(sorted(entries))
    const read = decodePage(page)!
    for (let at = 0; at < entries.length; at += ENTRY_WORDS) {
      const found = findInPage(read, entries.subarray(at, at + 4))
      expect(read[found + 4]).toBe(entries[at + 4])
    }
    expect(findInPage(read, Uint32Array.of(1, 2, 3, 4))).toBe(-1)
    for (let bit = 0; bit < 8 * page.length; bit += 13) {
      const turned = Buffer.from(page)
      turned[bit >>> 3] ^= 1 << (bit & 7)
      expect(decodePage(turned)).toBeNull()
    }
  })

  test('a filter lets through what is in it, and one in a hundred of the rest', () => {
    const digest = new IdDigest(KEY)
    const entry = (i: number) => {
      const bytes = Buffer.from(`id-${i}`)
      digest.digest(bytes, 0, bytes.length)
      return [...digest.words, 0, 0, 0]
    }
    const entries = Uint32Array.from(Array.from({ length: 2000 }, (_, i) => entry(i)).flat())
    const filter = Filter.for(2000, 4)
    filter.addAll(entries)
    const read = Filter.decode(filter.encode())!
    for (let i = 0; i < 2000; i++)
      expect(read.mayHold(entries.subarray(i * ENTRY_WORDS, i * ENTRY_WORDS + 4))).toBe(true)
    let passed = 0
    for (let i = 2000; i < 6000; i++) if (read.mayHold(Uint32Array.from(entry(i)))) passed += 1
    expect(passed).toBeLessThan(4000 * 0.02)
  })
})
