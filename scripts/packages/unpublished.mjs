// Prints whether a public package has a version that the registry has not: "true" or "false".
import { publicPackages } from './tarballs.mjs'
import { attempt } from './tools.mjs'

function isPublished({ manifest: { name, version } }) {
  const { ok, stdout, output } = attempt('npm', ['view', `${name}@${version}`, 'version'])
  if (ok) return stdout.trim() === version // a package without this version answers nothing
  if (output.includes('E404')) return false
  throw new Error(output)
}

process.stdout.write(`${!publicPackages().every(isPublished)}\n`)
