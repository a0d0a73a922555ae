// A contestant in Node as the comparison sees it: one or two processes that stay up for the whole run.
import { fork, spawnSync } from 'node:child_process'
import { cpus } from 'node:os'
import { expectedSum } from './source.mjs'

const program = new URL('process.mjs', import.meta.url)

/** One process and what it says. */
class Side {
  #waiting = new Map()
  #said = new Map()

  constructor(peer, role) {
    this.child = fork(program, [
      peer.file,
      role,
      JSON.stringify(peer.endpoint),
      JSON.stringify(peer.options ?? {}),
    ])
    this.child.on('message', (message) => {
      const resolve = this.#waiting.get(message.type)
      if (resolve === undefined) this.#said.set(message.type, message)
      else {
        this.#waiting.delete(message.type)
        resolve(message)
      }
    })
    this.child.on('exit', (code, signal) => {
      if (this.closing) return
      process.stderr.write(`bench: ${peer.name}, ${role}, ended: ${signal ?? code}\n`)
      process.exit(1)
    })
  }

  hears(type) {
    const said = this.#said.get(type)
    if (said === undefined) return new Promise((resolve) => this.#waiting.set(type, resolve))
    this.#said.delete(type)
    return Promise.resolve(said)
  }

  orders(message) {
    this.child.send(message)
  }

  close() {
    this.closing = true
    this.child.kill('SIGKILL')
  }
}

/** @param {{ cores?: readonly [number, number] }} peer none: the scheduler decides */
function pin(peer, first, second) {
  if (peer.cores === undefined || cpus().length === 1) return
  for (const [side, core] of [
    [first, peer.cores[0]],
    [second, peer.cores[1]],
  ])
    spawnSync('taskset', ['-a', '-p', '-c', core, side.child.pid].map(String))
}

/**
 * @param {{ name: string, file: string, endpoint: string | number, options?: object,
 *   cores?: readonly [number, number] }} peer
 * @returns burst(): GB/s of one burst, from the first write until the last word was read.
 */
export async function openThroughput(peer) {
  const { oneProcess } = await import(`./peers/${peer.file}.mjs`)
  const writer = new Side(peer, 'writer')
  await writer.hears('open')
  const reader = oneProcess ? writer : new Side(peer, 'reader')
  if (!oneProcess) await reader.hears('open')
  pin(peer, writer, reader)
  return {
    async burst(size, count) {
      reader.orders({ type: 'receive', size, count })
      await reader.hears('ready')
      writer.orders({ type: 'send', size, count })
      const [{ startNs }, { endNs, sum }] = await Promise.all([
        writer.hears('sent'),
        reader.hears('received'),
      ])
      if (sum !== sumOf(size, count)) throw new Error(`${peer.name}: the reader found other bytes`)
      return (size * count) / Number(BigInt(endNs) - BigInt(startNs))
    },
    close() {
      writer.close()
      if (reader !== writer) reader.close()
    },
  }
}

const sums = new Map()
function sumOf(size, count) {
  const key = `${size} ${count}`
  if (!sums.has(key)) sums.set(key, expectedSum(size, count))
  return sums.get(key)
}

/** Microseconds of each of `count` pings. The processes live for one call. */
export async function pingOnce(peer, count) {
  const { oneProcess } = await import(`./peers/${peer.file}.mjs`)
  const ping = new Side(peer, 'ping')
  const pong = oneProcess ? null : new Side(peer, 'pong')
  await Promise.all([ping.hears('open'), pong?.hears('open')])
  pin(peer, ping, pong)
  ping.orders({ type: 'ping', count })
  const { oneWayUs, roundTripUs } = await ping.hears('pinged')
  ping.close()
  pong?.close()
  return { oneWayUs, roundTripUs }
}
