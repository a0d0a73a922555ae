// One writer for an output. The lock is a name in Linux's abstract socket namespace: taking it is one
// step, the kernel gives it back however its process ends, and no file is left that could be stale. It
// is seen by all processes of a host that share a network namespace; elsewhere there is none.
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { createServer } from 'node:net'
import { basename, dirname } from 'node:path'
import { FabricError } from '@fabric/protocol'

/** By the folder's inode: a folder may have many paths. */
function nameOf(file: string): string {
  const { dev, ino } = statSync(dirname(file), { bigint: true })
  const hash = createHash('sha256').update(`${dev}:${ino}/${basename(file)}`)
  return `\0fabric-output-${hash.digest('hex')}`
}

/** Held until the process ends. @throws FabricError FABRIC_OUTPUT_IN_USE */
export async function lockOutput(file: string): Promise<void> {
  if (process.platform !== 'linux') return
  const server = createServer((connection) => connection.destroy())
  await new Promise<void>((resolve, reject) => {
    server.on('error', (cause: NodeJS.ErrnoException) => {
      const message = `another fabric command writes to ${file}`
      const inUse = new FabricError('FABRIC_OUTPUT_IN_USE', message, { field: 'output', cause })
      reject(cause.code === 'EADDRINUSE' ? inUse : cause)
    })
    server.listen(nameOf(file), resolve)
  })
  server.unref()
}
