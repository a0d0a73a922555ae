// Does the addon work on this machine? Plain Node without a test runner, so that it runs where vitest
// does not: under emulation, in a container, from an installed package.
//   node addon-check.mjs [PATH OF THE PACKAGE]
// Under qemu a process cannot start another of its own kind: FABRIC_EMULATOR then holds the command
// ("qemu-aarch64-static -L /usr/aarch64-linux-gnu") that the reading process is started with.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const MIB = 1 << 20
const RECORDS = 200
const PAYLOAD_BYTES = 100_000 // 200 of them go around a ring of 4 MiB four times
const self = fileURLToPath(import.meta.url)
const [packagePath = join(import.meta.dirname, '..'), socketPath] = isMainThread
  ? process.argv.slice(2)
  : [workerData]
const entry = pathToFileURL(resolve(packagePath, 'dist/index.js')).href
const { connectUnix, gatherRows, RingReader, RingWriter, ringSupport, sendDescriptors } =
  await import(entry)

const word = (record) => (record * 2654435761) >>> 0
const frame = Buffer.from([4, 0, 0, 0])
const done = (what) => process.stdout.write(`ok: ${what}\n`)

async function attach(path) {
  const connection = await connectUnix({ path, hello: frame, timeoutMs: 60_000 })
  const socket = new net.Socket({ fd: connection.socketFd })
  return { socket, reader: RingReader.attach(connection.descriptors) }
}

/** Gives the ring to everyone who says hello. */
async function serve(writer, path, message = frame) {
  const server = net.createServer((socket) => {
    socket.once('data', () => sendDescriptors(socket._handle.fd, message, writer.descriptors()))
    socket.on('error', () => {})
  })
  server.listen(path)
  await once(server, 'listening')
  return server
}

function checkOneProcess(writer, reader) {
  const claim = writer.claim(64)
  new Int32Array(writer.memory, claim.byteOffset, 16).fill(7)
  assert.equal(reader.next(), null, 'a claim is not visible')
  claim.commit(41)
  const aborted = writer.claim(64)
  aborted.abort()
  const record = reader.next()
  assert.equal(record.batchSequence, 41)
  const view = new Int32Array(record.payload)
  assert.deepEqual([view.length, view[0], view[15]], [16, 7, 7])
  record.take()
  assert.equal(claim.taken, true)
  record.release()
  assert.equal(view.length, 0, 'a view of a released record is empty')
  assert.equal(reader.next(), null, 'an aborted claim is passed over')
  assert.throws(() => claim.commit(42), { code: 'RING_CLAIM_SETTLED' })
}

function checkGather() {
  const target = new ArrayBuffer(24)
  const source = Uint8Array.from({ length: 16 }, (_, i) => i + 1).buffer
  const words = (...values) => Uint32Array.from(values)
  gatherRows(target, 8, 8, 2, [source], words(0, 0), words(4, 0), words(2, 8))
  assert.deepEqual([...new Uint8Array(target, 8)], [5, 6, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
  assert.throws(
    () => gatherRows(target, 8, 8, 3, [source], words(0), words(0), words(1)),
    RangeError,
  )
}

/** The reading process: every word of every record, in place. */
async function readAll(path) {
  const { socket, reader } = await attach(path)
  let next = 0
  await new Promise((finished) => {
    reader.onReadable(() => {
      for (let record = reader.next(); record !== null; record = reader.next()) {
        assert.equal(record.batchSequence, next)
        const found = new Uint32Array(record.payload)
        assert.ok(
          found.length === PAYLOAD_BYTES / 4 && found.every((value) => value === word(next)),
        )
        record.take()
        record.release()
        next += 1
      }
      if (next === RECORDS) finished()
    })
  })
  reader.close()
  socket.destroy()
}

async function checkTwoProcesses(path) {
  const writer = RingWriter.create({ capacityBytes: 4 * MIB, hugePages: 'off' })
  const server = await serve(writer, path)
  const emulator = process.env.FABRIC_EMULATOR?.split(' ') ?? []
  const [command, ...args] = [...emulator, process.execPath, self, packagePath, path]
  const child = spawn(command, args, { stdio: 'inherit' })
  const ended = once(child, 'exit')
  let waits = 0
  for (let record = 0; record < RECORDS; record++) {
    let claim = writer.claim(PAYLOAD_BYTES)
    while (claim === null) {
      waits += 1
      await Promise.race([
        new Promise((moved) => writer.onSpace(moved)),
        ended.then(([code]) => assert.fail(`the reading process ended with ${code}`)),
      ])
      claim = writer.claim(PAYLOAD_BYTES)
    }
    new Uint32Array(writer.memory, claim.byteOffset, PAYLOAD_BYTES / 4).fill(word(record))
    claim.commit(record)
  }
  assert.deepEqual(await ended, [0, null])
  assert.ok(waits > 0, 'the ring was full at times')
  assert.equal(writer.stat().usedBytes, 0)
  server.close()
  writer.close()
  return waits
}

async function main() {
  assert.deepEqual(ringSupport(), { supported: true, reason: '' })
  const folder = mkdtempSync(join(tmpdir(), 'addon-check-'))
  try {
    const writer = RingWriter.create({ capacityBytes: 4 * MIB, hugePages: 'try' })
    done(`ring of 4 MiB on ${writer.pages} pages (${writer.pagesReason || 'as asked'})`)
    const server = await serve(writer, join(folder, 'one'))
    const { reader, socket } = await attach(join(folder, 'one'))
    checkOneProcess(writer, reader)
    const { memory } = writer
    reader.close()
    writer.close()
    socket.destroy()
    server.close()
    assert.equal(memory.byteLength, 0)
    assert.throws(() => writer.claim(64), { code: 'RING_CLOSED' })
    done('claim, commit, abort, read in place, take, release, close')
    checkGather()
    done('rows packed')
    const worker = new Worker(self, { workerData: packagePath })
    assert.deepEqual(await once(worker, 'exit'), [0])
    done('loads in a worker thread')
    const waits = await checkTwoProcesses(join(folder, 'two'))
    done(`${RECORDS} records to another process, ${waits} waits for space`)
  } finally {
    rmSync(folder, { recursive: true })
  }
  process.stdout.write(
    `addon works: ${process.platform}-${process.arch}, Node ${process.version}\n`,
  )
}

if (!isMainThread) assert.equal(ringSupport().supported, true)
else if (socketPath !== undefined) await readAll(socketPath)
else await main()
