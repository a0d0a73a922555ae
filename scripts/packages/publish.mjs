// The release workflow's last step: publishes what the registry has not yet, and tags it.
// Provenance is refused unless package.json names the repository that the workflow runs in, and a fork
// has another: so the field is written here and not kept in the tree.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { publicPackages } from './tarballs.mjs'
import { root } from './tools.mjs'

const { GITHUB_REPOSITORY, GITHUB_SERVER_URL } = process.env
if (!GITHUB_REPOSITORY || !GITHUB_SERVER_URL) throw new Error('publishing is the workflow’s work')

for (const { folder } of publicPackages()) {
  const file = join(folder, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  manifest.repository = {
    type: 'git',
    url: `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git`,
    directory: relative(root, folder),
  }
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}
const { status } = spawnSync('pnpm', ['exec', 'changeset', 'publish'], {
  cwd: root,
  stdio: 'inherit',
})
process.exit(status ?? 1)
