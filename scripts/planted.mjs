// Plants one fault at a time in the log and runs the crash suite, which must fail each time. `just mutants` does it for
// all faults; with `slice: true` only for some that are found within seconds.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './command.mjs'
import { Failure, runMain, say } from './failure.mjs'

/**
 * The crash suite, fast and with every check of debug builds. Faults can be planted in it, so that one build serves
 * both; without `MILLPOND_PLANTED` there are none.
 */
export const crashTests = ['nextest', 'run', '--locked', '-p', 'millpond-testkit', '--no-default-features']
crashTests.push('--features', 'planted', '--test', 'crash', '--cargo-profile', 'crash', '--profile', 'crash')

/** Found by the taste of a budget already; between them they are found by different tests. */
const quick = ['skip-data-sync', 'ignore-payload-checksum', 'retry-failed-sync', 'reuse-id-after-drain']

/** @returns {string[]} */
function faults() {
  const source = readFileSync(join(root, 'crates/millpond/src/store/log/planted.rs'), 'utf8')
  const names = [...source.matchAll(/\("([a-z-]+)", Fault::/g)].map((match) => match[1] ?? '')
  if (names.length === 0) throw new Failure('no planted fault is listed in planted.rs')
  return names
}

/**
 * The tests that fail with this fault; with none, those that fail anyway.
 * @param {string | null} fault
 * @param {string} budget
 * @returns {Promise<string[]>}
 */
function failing(fault, budget) {
  const args = [...crashTests, '--no-fail-fast', '--failure-output', 'never', '--success-output', 'never']
  const planted = fault === null ? {} : { MILLPOND_PLANTED: fault }
  const { MILLPOND_PLANTED: _, ...given } = process.env
  const env = { ...given, ...planted, MILLPOND_CRASH: budget, RUST_BACKTRACE: '0' }
  const child = spawn('cargo', args, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (chunk) => (text += chunk))
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Failure(`cargo: ${error.message}`)))
    child.on('close', () => {
      const found = text.matchAll(/(?:FAIL|SIGABRT|TIMEOUT) \[[^\]]*\] .*millpond-testkit::crash (\S+)/g)
      if (text.includes('Summary [')) resolve([...new Set(Array.from(found, (match) => match[1] ?? ''))])
      else reject(new Failure(`the crash suite did not run with ${fault ?? 'no fault'}:\n${text}`))
    })
  })
}

/**
 * @param {{ slice: boolean }} options
 * @returns {Promise<void>}
 */
export async function findPlanted({ slice }) {
  await run('cargo', [...crashTests, '--no-run'])
  // A suite that is red by itself would find every fault.
  const red = await failing(null, 'taste')
  if (red.length > 0) throw new Failure(`without a fault these fail already: ${red.join(', ')}`)
  say('no fault planted: every test passes')
  const missed = []
  const names = slice ? quick : faults()
  for (const fault of names) {
    const started = performance.now()
    let tests = await failing(fault, 'taste')
    // A taste is the quick way; the normal budget decides.
    if (tests.length === 0) tests = await failing(fault, 'slice')
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    say(
      `${fault.padEnd(32)}${seconds.padStart(7)} s  ${tests.length === 0 ? 'NOT FOUND' : `found by ${tests.join(', ')}`}`,
    )
    if (tests.length === 0) missed.push(fault)
  }
  say(`planted faults: ${names.length - missed.length} of ${names.length} found`)
  if (missed.length > 0) throw new Failure(`not found: ${missed.join(', ')}`)
}

if (process.argv[1] === join(root, 'scripts/planted.mjs')) {
  await runMain(async () => {
    await findPlanted({ slice: false })
    return 0
  })
}
