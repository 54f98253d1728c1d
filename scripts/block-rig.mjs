// Power cuts and disk errors on real file systems: `node scripts/block-rig.mjs [--full] [--quick]`. `npm test` runs the
// slice, `just power-cut` everything.
import { pathToFileURL } from 'node:url'
import { NotRun, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { runRig } from './rig.mjs'
import { setUp } from './setup.mjs'

const usage = `usage: node scripts/block-rig.mjs [--full] [--quick]

  --full    all images and cases; without it about a minute of them
  --quick   leave out the stores of RocksDB and sled
`

/**
 * Rejects with a {@link NotRun} that has the reason where block devices cannot be made.
 * @param {'slice' | 'full'} plan
 * @param {string} workspace How cargo chooses packages and features.
 * @returns {Promise<void>}
 */
export async function runBlockRig(plan, workspace) {
  await runRig('block-rig', [plan], workspace)
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
