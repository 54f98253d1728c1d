// The addon in Node on a strict file system that is cut off at any call: `node scripts/strict-disk.mjs [--cycles N]`.
// `npm test` runs some cycles, `just strict-disk` all.
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, run } from './command.mjs'
import { Failure, NotRun, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { runRig } from './rig.mjs'
import { setUp } from './setup.mjs'

const usage = `usage: node scripts/strict-disk.mjs [--cycles N]

  --cycles  so many crashes; 5000
`

/**
 * Rejects with a {@link NotRun} that has the reason where it cannot be mounted.
 * @param {number} cycles
 * @param {string} cargo How cargo chooses packages and features.
 * @returns {Promise<string>} What it printed.
 */
export async function runStrictDisk(cycles, cargo) {
  // The controls take an addon in which faults can be planted.
  const planted = join(root, 'target/planted-addon')
  mkdirSync(planted, { recursive: true })
  await run('node', ['crates/millpond-node/build.mjs', '--debug', '--features', 'millpond/planted', '--into', planted])
  const addon = readdirSync(planted).find((name) => name.endsWith('.node'))
  if (addon === undefined) throw new Failure(`${planted} has no addon`)
  return runRig('strict-disk', [String(cycles)], cargo, { MILLPOND_PLANTED_ADDON: join(planted, addon) })
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await runMain(async () => {
    const { cycles } = flagsOf(process.argv.slice(2), { cycles: { type: 'string', default: '5000' } }, usage)
    if (!/^[1-9]\d*$/.test(cycles)) throw new Failure(`--cycles ${cycles}: a number`)
    await setUp({ tests: true })
    try {
      await runStrictDisk(Number(cycles), '--locked -p millpond-testkit --features strict-disk')
    } catch (cause) {
      if (!(cause instanceof NotRun)) throw cause
      say(`not run: ${cause.message}`)
    }
    return 0
  })
}
