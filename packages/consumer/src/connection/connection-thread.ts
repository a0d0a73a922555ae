// Entry of the connection's thread: ties a Connection to the port of the thread that started it.
import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from './connection.js'
import type { Command, ConnectionOptions, Report } from './messages.js'

if (parentPort === null) throw new Error('connection-thread runs in a worker thread')
const port = parentPort
const connection = new Connection(
  workerData as ConnectionOptions,
  (report: Report, transfer: ArrayBuffer[] = []) => {
    port.postMessage(report, transfer)
    // Nothing holds the thread once the port is closed: it ends by itself.
    if (report.type === 'closed' || report.type === 'failed') port.close()
  },
)
port.on('message', (command: Command) => connection.handle(command))
void connection.connect()
