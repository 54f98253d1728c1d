// `npm test`: set-up, then everything that must hold before a change goes in. One step after another, each printed
// with its time; all steps run, so that one run shows everything that is wrong.
import { runBlockRig } from './block-rig.mjs'
import { run } from './command.mjs'
import { Failure, NotRun, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { fuzz } from './fuzz.mjs'
import { crashTests, findPlanted } from './planted.mjs'
import { setUp } from './setup.mjs'
import { checkSnippets } from './snippets.mjs'
import { runStrictDisk } from './strict-disk.mjs'

const usage = `usage: npm test [-- --quick]

  --quick   leave out the stores of RocksDB and sled: RocksDB's C++ takes long to build the first time`

const isCi = process.env['CI'] !== undefined

/** @param {string} line @param {Record<string, string>} [env] */
const command = (line, env = {}) => {
  const [program = '', ...args] = line.split(' ')
  return () => run(program, args, { env })
}

const schedules = command(
  'cargo nextest run --locked -p millpond --test shuttle --cargo-profile loom --target-dir target/shuttle --no-capture',
  { RUSTFLAGS: '--cfg loom --cfg shuttle' },
)

/**
 * @param {boolean} quick
 * @returns {readonly [name: string, step: () => Promise<void>][]}
 */
function stepsOf(quick) {
  // One set for every step, so that nothing is compiled twice. The store of redb is on by default in the testkit.
  const codecs = ['serde', 'borsh', 'rkyv', 'tokio'].map((feature) => `millpond/${feature}`)
  const features = quick
    ? `--features ${[...codecs, 'millpond-testkit/tokio', 'millpond-testkit/strict-disk', 'xtask/typed'].join(',')}`
    : '--all-features'
  const workspace = `--locked --workspace ${features}`
  return [
    ['Rust format', command('cargo fmt --all --check')],
    ['Rust lint', command(`cargo clippy ${workspace} --all-targets -- -D warnings`)],
    ['Rust tests', command(`cargo nextest run ${workspace} --profile ${isCi ? 'ci' : 'default'}`)],
    ['Rust documentation tests', command(`cargo test --doc ${workspace}`)],
    ['schedules at random', schedules],
    ['Rust documentation', command(`cargo doc --no-deps ${workspace}`, { RUSTDOCFLAGS: '-D warnings' })],
    ['crashes on a simulated disk', () => run('cargo', crashTests, { env: { MILLPOND_CRASH: 'slice' } })],
    ['planted faults', () => findPlanted({ slice: true })],
    ['fuzz targets', () => fuzz({ seconds: 30 })],
    ['instructions of hot paths', command('node scripts/instructions.mjs')],
    ['TypeScript format', command('npm run --silent format:check')],
    ['TypeScript lint', command('npm run --silent lint')],
    ['TypeScript types', command('npm run --silent typecheck')],
    ['script types', command('npx --no-install tsc -p scripts/tsconfig.json')],
    ['TypeScript tests', command('npm run --silent test:ts')],
    ['power cuts and disk errors', () => runBlockRig('slice', workspace)],
    ['crashes on a strict file system', async () => void (await runStrictDisk(400, workspace))],
    ['script tests', command('node --test demo/ bench/')],
    ['snippets of the documents', checkSnippets],
    ['package', command('npx --no-install publint --strict')],
    ['package types', command('npx --no-install attw --pack . --profile esm-only --no-emoji --format ascii')],
  ]
}

/** @returns {Promise<number>} */
async function main() {
  const { quick = false } = flagsOf(process.argv.slice(2), { quick: { type: 'boolean' } }, usage)
  await setUp({ tests: true, rocks: !quick })
  /** @type {{ name: string, end: 'ok' | 'FAILED' | 'not run', seconds: number, why: string }[]} */
  const done = []
  for (const [name, step] of stepsOf(quick)) {
    say(`\n== ${name}`)
    const started = performance.now()
    /** @type {{ end: 'ok' | 'FAILED' | 'not run', why: string }} */
    let result = { end: 'ok', why: '' }
    try {
      await step()
    } catch (cause) {
      if (!(cause instanceof Failure || cause instanceof NotRun)) throw cause
      result = { end: cause instanceof NotRun ? 'not run' : 'FAILED', why: cause.message }
      say(`${result.end}: ${result.why}`)
    }
    done.push({ name, seconds: (performance.now() - started) / 1000, ...result })
  }

  say('')
  for (const { name, end, seconds, why } of done) {
    say(`${end.padEnd(8)}${name.padEnd(32)}${seconds.toFixed(1).padStart(8)} s   ${why}`.trimEnd())
  }
  const count = (/** @type {string} */ wanted) => done.filter(({ end }) => end === wanted).length
  const [failed, notRun] = [count('FAILED'), count('not run')]
  const leftOut = quick ? '; NOT tested: the stores of RocksDB and sled (--quick)' : ''
  const skipped = notRun === 0 ? '' : `, ${notRun} skipped`
  process.stdout.write(`steps: ${count('ok')} passed, ${failed} failed${skipped}${leftOut}\n`)
  return failed === 0 ? 0 : 1
}

await runMain(main)
