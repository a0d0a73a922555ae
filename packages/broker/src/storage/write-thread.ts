// The writing thread: opens the file, tells what is in it, then commits what it is sent.
import { parentPort, workerData } from 'node:worker_threads'
import { dataFile, openEnvironment } from './environment.js'
import { withinGate } from './exit-gate.js'
import { startFailure } from './failure.js'
import type { FromWriter, Request, StoreSettings, Write } from './messages.js'
import { WriteLoop } from './write-loop.js'
import { Writer } from './writer.js'

const port = parentPort!
const settings = workerData as StoreSettings
const tell = (message: FromWriter) => port.postMessage(message)

function open(found: string[]): Writer {
  const environment = openEnvironment(settings.dataDir, {
    noSync: settings.sync === 'never',
    onProblem: (text) => found.push(text),
  })
  let isOpen = false
  const writer = new Writer(environment, settings, (problem) => {
    if (isOpen) tell({ kind: 'problem', problem })
    else found.push(problem.message)
  })
  isOpen = true
  return writer
}

try {
  const found: string[] = []
  const writer = withinGate(settings.exitFlags, () => open(found))
  const { environment } = writer
  const opened = { recovery: writer.recovery(found), size: writer.size }
  const loop = new WriteLoop(environment, settings, writer, tell, () => {
    clearInterval(probes)
    environment.log.close()
    environment.root.close().finally(() => port.close())
  })
  const probes = setInterval(() => loop.probe(), settings.probeIntervalMs)
  port.on('message', (request: Request<Write>) => loop.take(request))
  tell({ kind: 'opened', ...opened })
} catch (error) {
  // Nothing is open that would keep the thread: it ends with its port.
  tell({ kind: 'refused', failure: startFailure(error, dataFile(settings.dataDir)) })
  port.close()
}
