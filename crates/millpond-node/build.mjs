// Builds the addon and puts it beside package.json, or into the folder `--into`. `--debug` builds without optimisation,
// `--features` with what only tests want.
import { spawnSync } from 'node:child_process'
import { copyFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values: flags } = parseArgs({
  options: {
    debug: { type: 'boolean', default: false },
    features: { type: 'string', default: '' },
    into: { type: 'string', default: root },
  },
})

const library =
  { darwin: 'libmillpond_node.dylib', win32: 'millpond_node.dll' }[process.platform] ?? 'libmillpond_node.so'
const suffix = process.platform === 'linux' ? '-gnu' : ''

const cargo = ['build', '--package', 'millpond-node', '--locked', '--message-format', 'json-render-diagnostics']
if (!flags.debug) cargo.push('--release')
if (flags.features !== '') cargo.push('--features', flags.features)
const built = spawnSync('cargo', cargo, {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 1 << 30,
  encoding: 'utf8',
})
if (built.status !== 0) process.exit(built.status ?? 1)

// Cargo says where it put the library, whatever CARGO_TARGET_DIR is.
const files = built.stdout
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .filter((message) => message.reason === 'compiler-artifact')
  .flatMap((message) => message.filenames)
const file = files.find((name) => name.endsWith(library))
if (file === undefined) throw new Error(`cargo reported no ${library}`)

const target = join(flags.into, `millpond.${process.platform}-${process.arch}${suffix}.node`)
// By rename: a process that has the old file mapped keeps it.
copyFileSync(file, `${target}.new`)
renameSync(`${target}.new`, target)
console.log(target)
