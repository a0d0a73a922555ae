// The core's simulation as one plain module: quick to start in many processes, and buildable from a
// changed copy of the sources.
import { join } from 'node:path'
import { build } from 'vite'

/** @param {string} core folder of the package, or of a copy of it @returns the module's path */
export async function bundleSimulation(core, outDir) {
  await build({
    configFile: false,
    logLevel: 'error',
    root: core,
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      rollupOptions: {
        input: join(core, 'test', 'seeds.ts'),
        output: { entryFileNames: 'seeds.mjs' },
      },
    },
  })
  return join(outDir, 'seeds.mjs')
}
