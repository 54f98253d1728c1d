// Power cuts and disk errors on real file systems: `node scripts/block-rig.mjs slice|full [--quick]`. `npm test` runs the
// slice, `just power-cut` everything.
import { spawn } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { output, root } from './command.mjs'
import { Failure, NotRun, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { setUp } from './setup.mjs'

const usage = `usage: node scripts/block-rig.mjs [--full] [--quick]

  --full    all images and cases; without it about a minute of them
  --quick   leave out the stores of RocksDB and sled
`

/** What the rig ends with where block devices cannot be made. */
const notRun = 77

/**
 * Builds the rig and runs it. Rejects with a {@link NotRun} that has the reason where block devices cannot be made.
 * @param {'slice' | 'full'} plan
 * @param {string} workspace How cargo chooses packages and features.
 * @returns {Promise<void>}
 */
export async function runBlockRig(plan, workspace) {
  const json = '--message-format=json-render-diagnostics'
  const built = await output('cargo', ['build', ...workspace.split(' '), '--bin', 'block-rig', json])
  if (built === null) throw new Failure('block-rig cannot be built: run cargo build to see why')
  const program = built
    .split('\n')
    .map((line) => JSON.parse(line))
    .find(({ executable, target }) => executable && target.name === 'block-rig')?.executable
  if (program === undefined) throw new Failure('cargo built no block-rig')

  const rig = spawn(program, [plan], { cwd: root, stdio: ['ignore', 'pipe', process.stderr] })
  let said = ''
  rig.stdout.setEncoding('utf8')
  rig.stdout.on('data', (chunk) => {
    said += chunk
    process.stderr.write(chunk)
  })
  const code = await new Promise((resolve, reject) => {
    rig.on('error', (error) => reject(new Failure(`block-rig: ${error.message}`)))
    rig.on('close', resolve)
  })
  if (code === notRun) throw new NotRun(said.trim().replace(/^not run: /, ''))
  if (code !== 0) throw new Failure(`block-rig ${plan}: exit code ${code}`)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await runMain(async () => {
    const boolean = /** @type {const} */ ({ type: 'boolean', default: false })
    const { full, quick } = flagsOf(process.argv.slice(2), { full: boolean, quick: boolean }, usage)
    await setUp({ tests: true, rocks: !quick })
    try {
      await runBlockRig(full ? 'full' : 'slice', `--locked --workspace${quick ? '' : ' --all-features'}`)
    } catch (cause) {
      if (!(cause instanceof NotRun)) throw cause
      say(`not run: ${cause.message}`)
    }
    return 0
  })
}
