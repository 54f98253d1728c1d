// `npm test`: set-up, then everything that must hold before a change goes in. One step after another, each printed
// with its time; all steps run, so that one run shows everything that is wrong.
import { run } from './command.mjs'
import { Failure, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { setUp } from './setup.mjs'
import { checkSnippets } from './snippets.mjs'

const usage = `usage: npm test [-- --quick]

  --quick   leave out the stores of RocksDB and sled: RocksDB's C++ takes long to build the first time`

const isCi = process.env['CI'] !== undefined

/** @param {string} line @param {Record<string, string>} [env] */
const command = (line, env = {}) => {
  const [program = '', ...args] = line.split(' ')
  return () => run(program, args, { env })
}

/**
 * @param {boolean} quick
 * @returns {readonly [name: string, step: () => Promise<void>][]}
 */
function stepsOf(quick) {
  // One set for every step, so that nothing is compiled twice. The store of redb is on by default in the testkit.
  const codecs = ['serde', 'borsh', 'rkyv', 'tokio'].map((feature) => `millpond/${feature}`)
  const features = quick ? `--features ${[...codecs, 'xtask/typed'].join(',')}` : '--all-features'
  const workspace = `--locked --workspace ${features}`
  return [
    ['Rust format', command('cargo fmt --all --check')],
    ['Rust lint', command(`cargo clippy ${workspace} --all-targets -- -D warnings`)],
    ['Rust tests', command(`cargo nextest run ${workspace} --profile ${isCi ? 'ci' : 'default'}`)],
    ['Rust documentation tests', command(`cargo test --doc ${workspace}`)],
    ['Rust documentation', command(`cargo doc --no-deps ${workspace}`, { RUSTDOCFLAGS: '-D warnings' })],
    ['instructions of hot paths', command('node scripts/instructions.mjs')],
    ['TypeScript format', command('npm run --silent format:check')],
    ['TypeScript lint', command('npm run --silent lint')],
    ['TypeScript types', command('npm run --silent typecheck')],
    ['script types', command('npx --no-install tsc -p scripts/tsconfig.json')],
    ['TypeScript tests', command('npm run --silent test:ts')],
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
  /** @type {{ name: string, seconds: number, error: string | null }[]} */
  const done = []
  for (const [name, step] of stepsOf(quick)) {
    say(`\n== ${name}`)
    const started = performance.now()
    let error = null
    try {
      await step()
    } catch (cause) {
      if (!(cause instanceof Failure)) throw cause
      error = cause.message
      say(`failed: ${error}`)
    }
    done.push({ name, seconds: (performance.now() - started) / 1000, error })
  }

  say('')
  for (const { name, seconds, error } of done) {
    say(
      `${error === null ? 'ok    ' : 'FAILED'} ${name.padEnd(28)}${seconds.toFixed(1).padStart(8)} s${error === null ? '' : `   ${error}`}`,
    )
  }
  const failed = done.filter(({ error }) => error !== null).length
  const leftOut = quick ? '; NOT tested: the stores of RocksDB and sled (--quick)' : ''
  process.stdout.write(`steps: ${done.length - failed} passed, ${failed} failed${leftOut}\n`)
  return failed === 0 ? 0 : 1
}

await runMain(main)
