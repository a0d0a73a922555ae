// Opens each data folder that a line of its input names and tells all that is in it, as one line of JSON:
// a process of its own, for what a lying disk left may end it. What opens and reads is what the store's
// two threads run, without the threads, which take far longer to start.
import { createInterface } from 'node:readline'
import { dataFile, openEnvironment } from '../../../dist/storage/environment.js'
import { startFailure } from '../../../dist/storage/failure.js'
import { Reader } from '../../../dist/storage/reader.js'
import { readRecord, recordLength } from '../../../dist/storage/result-chunk.js'
import { Writer } from '../../../dist/storage/writer.js'

const decoder = new TextDecoder()
const ALL = 1 << 30

function readWaiting(reader, { number, shapes }) {
  return shapes.flatMap((shape) => {
    const read = reader.read(number, shape, ALL, ALL)
    if (read === null) return []
    const { block } = read
    return Array.from(read.sequences, (_, i) => {
      const from = i === 0 ? 0 : block.idEnds[i - 1]
      return decoder.decode(block.ids.subarray(from, block.idEnds[i]))
    })
  })
}

function readResults(reader, { number, results: { firstOffset } }) {
  const results = []
  for (let offset = firstOffset; ; ) {
    const found = reader.results(number, offset, ALL)
    if (found === null) return results
    for (let i = 0, at = 0; i < found.count; i++) {
      const { id, value } = readRecord(found.bytes, at)
      results.push([decoder.decode(id), decoder.decode(value)])
      at += recordLength(found.bytes, at)
    }
    if (found.nextOffset <= offset) return results
    offset = found.nextOffset
  }
}

async function read(dataDir) {
  const problems = []
  let environment = null
  try {
    environment = openEnvironment(dataDir, { onProblem: (problem) => problems.push(problem) })
    const settings = { maxKeptResultBytes: ALL, sync: 'always' }
    const writer = new Writer(environment, settings, ({ message }) => problems.push(message))
    const reader = new Reader(environment, (table) => problems.push(`damaged: ${table}`))
    const { jobs } = writer.recovery([])
    const waiting = jobs.flatMap((job) => readWaiting(reader, job))
    const results = jobs.flatMap((job) => readResults(reader, job))
    return { waiting, results, problems }
  } catch (error) {
    const { code, message } = startFailure(error, dataFile(dataDir))
    return { error: code, message, problems }
  } finally {
    environment?.log.close()
    await environment?.root.close()
  }
}

for await (const dataDir of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await read(dataDir))}\n`)
