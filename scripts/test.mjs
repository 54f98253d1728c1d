// `npm test`: set-up, then everything that must hold before a change goes in. One step after another, each printed
// with its time; all steps run, so that one run shows everything that is wrong.
import { run } from './command.mjs'
import { Failure, runMain, say } from './failure.mjs'
import { setUp } from './setup.mjs'
import { checkSnippets } from './snippets.mjs'

const isCi = process.env['CI'] !== undefined

/** @param {string} line */
const command = (line) => {
  const [program = '', ...args] = line.split(' ')
  return () => run(program, args)
}

// The store of redb is on by default in the testkit. `just test-all` has sled and RocksDB too, which compiles a
// database in C++ for a quarter of an hour and more.
const features = [...['serde', 'borsh', 'rkyv', 'tokio'].map((feature) => `millpond/${feature}`), 'xtask/typed'].join(
  ',',
)

/** @type {readonly [name: string, step: () => Promise<void>][]} */
const steps = [
  ['Rust format', command('cargo fmt --all --check')],
  ['Rust lint', command(`cargo clippy --locked --workspace --all-targets --features ${features} -- -D warnings`)],
  [
    'Rust tests',
    command(`cargo nextest run --locked --workspace --features ${features} --profile ${isCi ? 'ci' : 'default'}`),
  ],
  ['Rust documentation tests', command(`cargo test --locked --doc --workspace --features ${features}`)],
  ['instructions of hot paths', command('node scripts/instructions.mjs')],
  ['generated files', command('cargo --locked xtask codegen --check')],
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

/** @returns {Promise<number>} */
async function main() {
  await setUp({ tests: true })
  /** @type {{ name: string, seconds: number, error: string | null }[]} */
  const done = []
  for (const [name, step] of steps) {
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
  process.stdout.write(`steps: ${done.length - failed} passed, ${failed} failed\n`)
  return failed === 0 ? 0 : 1
}

await runMain(main)
