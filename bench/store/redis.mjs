// Redis Streams over a Unix socket. A group is one MULTI/EXEC: without it Redis would sync once for each
// 16 KiB that it reads. Commands are encoded before the clock starts, answers only counted and checked
// for errors: a client library would be slower.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { groupsOf, IN_FLIGHT, idOf, timeGroups, tokensOf, WARM_ITEMS } from './items.mjs'

const SERVER = 'redis-server'

/** @returns {string | null} its version, or null when it is not installed */
export function redisVersion() {
  const found = spawnSync(SERVER, ['--version'], { encoding: 'utf8' })
  return found.status === 0 ? (/v=(\S+)/.exec(found.stdout)?.[1] ?? 'unknown') : null
}

const command = (...words) =>
  Buffer.concat([
    Buffer.from(`*${words.length}\r\n`),
    ...words.flatMap((word) => {
      const bytes = Buffer.from(word)
      return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]
    }),
  ])

/** One connection; one request is under way at a time. */
class Connection {
  #socket
  #parts = []
  #waiting = null

  static async open(path) {
    const socket = createConnection(path)
    await once(socket, 'connect')
    const connection = new Connection()
    connection.#socket = socket
    socket.on('data', (bytes) => {
      connection.#parts.push(bytes)
      connection.#waiting?.()
    })
    return connection
  }

  /** Sends, and waits until as many answers came. @returns {Promise<unknown[]>} */
  async ask(bytes, answers) {
    this.#socket.write(bytes)
    for (;;) {
      await new Promise((resolve) => {
        this.#waiting = resolve
      })
      const all = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts)
      this.#parts = [all]
      const found = parse(all, answers)
      if (found === null) continue
      this.#parts = []
      return found
    }
  }

  close() {
    this.#socket.destroy()
  }
}

/** null: not all is there yet. */
function parse(bytes, count) {
  let at = 0
  const line = () => {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) throw INCOMPLETE
    const text = bytes.toString('latin1', at, end)
    at = end + 2
    return text
  }
  const value = () => {
    const head = line()
    switch (head[0]) {
      case '-':
        throw new Error(`redis: ${head}`)
      case '$': {
        const length = Number(head.slice(1))
        if (length < 0) return null
        const start = at
        at += length + 2
        if (at > bytes.length) throw INCOMPLETE
        return bytes.subarray(start, start + length)
      }
      case '*': {
        const length = Number(head.slice(1))
        return length < 0 ? null : Array.from({ length }, value)
      }
      default:
        return head.slice(1)
    }
  }
  try {
    return Array.from({ length: count }, value)
  } catch (error) {
    if (error === INCOMPLETE) return null
    throw error
  }
}
const INCOMPLETE = Symbol('incomplete')

/** @param {{ folder: string, items: number, group: number, sync: 'always' | 'relaxed' }} run */
export async function redis({ folder, items, group, sync }) {
  const dir = mkdtempSync(join(folder, 'redis-'))
  const socket = join(dir, 'socket')
  const appendfsync = sync === 'always' ? 'always' : 'everysec'
  const options = ['--port', '0', '--unixsocket', socket, '--dir', dir, '--save', '']
  const aof = ['--appendonly', 'yes', '--appendfsync', appendfsync]
  const rewrite = ['--auto-aof-rewrite-percentage', '0', '--loglevel', 'warning']
  const server = spawn(SERVER, [...options, ...aof, ...rewrite], { stdio: 'ignore' })
  try {
    const connections = await connect(socket)
    const append = async ({ bytes, count }, lane) => {
      const answers = await connections[lane].ask(bytes, count + 2)
      if (answers[count + 1].length !== count) throw new Error('redis did not take the group')
    }
    await connections[0].ask(command('XGROUP', 'CREATE', 'items', 'gpus', '0', 'MKSTREAM'), 1)
    await timeGroups(groupsOf(1, WARM_ITEMS, group).map(multi), append)
    await pack(connections, group)
    const groups = groupsOf(WARM_ITEMS + 1, items, group).map(multi)
    const acceptSeconds = await timeGroups(groups, append)
    const packed =
      sync === 'always' ? await pack(connections, group) : { settled: items, seconds: Number.NaN }
    if (packed.settled !== items) throw new Error(`redis settled ${packed.settled} of ${items}`)
    for (const connection of connections) connection.close()
    return { accept: items / acceptSeconds, pack: items / packed.seconds }
  } finally {
    server.kill('SIGKILL')
    await once(server, 'exit')
    rmSync(dir, { recursive: true })
  }
}

async function connect(socket) {
  for (let tries = 0; ; tries++) {
    try {
      return await Promise.all(Array.from({ length: IN_FLIGHT }, () => Connection.open(socket)))
    } catch (error) {
      if (tries > 200) throw error
      await sleep(25)
    }
  }
}

function multi({ first, count }) {
  const parts = [command('MULTI')]
  for (let number = first; number < first + count; number++) {
    const body = Buffer.from(tokensOf(number).buffer)
    parts.push(command('XADD', 'items', '*', 'id', idOf(number), 'body', body))
  }
  parts.push(command('EXEC'))
  return { bytes: Buffer.concat(parts), count }
}

/** Reads batches for a consumer group and acknowledges them; results are not stored. */
async function pack(connections, batch) {
  const count = String(batch)
  let settled = 0
  const start = process.hrtime.bigint()
  const lane = async (connection, which) => {
    const words = ['GROUP', 'gpus', `gpu${which}`, 'COUNT', count, 'STREAMS', 'items', '>']
    const read = command('XREADGROUP', ...words)
    for (;;) {
      const [found] = await connection.ask(read, 1)
      if (found === null) return
      const ids = found[0][1].map(([id]) => id)
      const [acknowledged] = await connection.ask(command('XACK', 'items', 'gpus', ...ids), 1)
      settled += Number(acknowledged)
    }
  }
  await Promise.all(connections.map(lane))
  return { settled, seconds: Number(process.hrtime.bigint() - start) / 1e9 }
}
