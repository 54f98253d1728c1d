// The fuzz targets. `node scripts/fuzz.mjs` gives each a minute, `--seconds N` another time, `--target NAME` one of them.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { output, root, run } from './command.mjs'
import { NotRun, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'

const version = '0.13.2'
const tools = join(root, 'target/tools')
const usage = `usage: node scripts/fuzz.mjs [--seconds N] [--target NAME]

  --seconds N     how long each target runs (60)
  --target NAME   only this one`

/** No input of a target justifies more memory at once: its files have at most 64 KiB. */
const largestAllocation = 2

/** @returns {string[]} */
function targets() {
  const manifest = readFileSync(join(root, 'fuzz/Cargo.toml'), 'utf8')
  return [...manifest.matchAll(/\[\[bin\]\]\nname = "([a-z_]+)"/g)].map((match) => match[1] ?? '')
}

/** @returns {Promise<string>} The program cargo-fuzz, built where it is missing. */
async function cargoFuzz() {
  if ((await output('rustc', ['+nightly', '--version'])) === null) {
    throw new NotRun('the nightly toolchain is missing: rustup toolchain install nightly')
  }
  if ((await output('cargo', ['fuzz', '--version'])) !== null) return 'cargo-fuzz'
  const own = join(tools, 'bin/cargo-fuzz')
  if (existsSync(own)) return own
  say(`building cargo-fuzz ${version} (minutes, once)`)
  try {
    await run('cargo', ['install', 'cargo-fuzz', '--locked', '--version', version, '--root', tools])
  } catch (cause) {
    throw new NotRun(
      `cargo-fuzz ${version} cannot be installed: ${cause instanceof Error ? cause.message : 'no reason given'}`,
    )
  }
  return own
}

/**
 * @param {{ seconds: number, only?: string | undefined }} options
 * @returns {Promise<void>}
 */
export async function fuzz({ seconds, only }) {
  const program = await cargoFuzz()
  const env = { RUSTUP_TOOLCHAIN: 'nightly', CARGO_TARGET_DIR: join(root, 'target/fuzz') }
  await run(program, ['build', '--release', '--debug-assertions'], { env })
  for (const target of targets().filter((name) => only === undefined || name === only)) {
    const corpus = join(root, 'target/fuzz/corpus', target)
    const artifacts = `${join(root, 'target/fuzz/artifacts', target)}/`
    for (const folder of [corpus, artifacts]) mkdirSync(folder, { recursive: true })
    say(`\nfuzzing ${target} for ${seconds} s`)
    const limits = [`-max_total_time=${seconds}`, `-malloc_limit_mb=${largestAllocation}`, '-timeout=10']
    const flags = [...limits, '-max_len=4096', '-print_final_stats=1', '-verbosity=0', `-artifact_prefix=${artifacts}`]
    const args = ['run', '--release', '--debug-assertions', target, corpus, join(root, 'fuzz/seeds', target)]
    await run(program, [...args, '--', ...flags], { env })
  }
}

if (process.argv[1] === join(root, 'scripts/fuzz.mjs')) {
  await runMain(async () => {
    const flags = flagsOf(process.argv.slice(2), { seconds: { type: 'string' }, target: { type: 'string' } }, usage)
    await fuzz({ seconds: Number(flags.seconds ?? 60), only: flags.target })
    return 0
  })
}
