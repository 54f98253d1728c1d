// `just compare`: the published crates beside ours, in rounds; then the bars, a result and a plot.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join, resolve } from 'node:path'
import { barsOf, medians, plotOf, report } from '../bench/compare.mjs'
import { writeDocuments } from '../bench/document.mjs'
import { checkPlace } from '../bench/place.mjs'
import { RawLoop } from '../bench/raw-loop.mjs'
import { place } from '../bench/report.mjs'
import { output, root, run } from './command.mjs'
import { deviceOf, machine } from './device.mjs'
import { Failure, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { rocksdb } from './rocksdb.mjs'

const usage = `Usage: node scripts/compare.mjs [options]

Beside persistent-queue 0.2.0 and, with --events, arch-event-queues 0.1.1. Writes bench/results/compare.json and .svg;
exit code 1 when a bar is missed.

  --rocksdb    both on RocksDB too; it is built once for a machine, or taken from ROCKSDB_LIB_DIR
  --events     the event queues, on the same RocksDB
  --rounds N   how many rounds the medians are of (default 3)
  --seconds S  of each figure in each round (default 2)
  --dir D      where the files go (default: target/bench); refused when that is in memory
`

const payloadBytes = 256
const eventProducers = 16

await runMain(async () => {
  const boolean = /** @type {const} */ ({ type: 'boolean', default: false })
  const string = /** @type {const} */ ({ type: 'string' })
  const shape = { rocksdb: boolean, events: boolean, rounds: string, seconds: string, dir: string }
  const flags = flagsOf(process.argv.slice(2), shape, usage)
  const [rounds, seconds] = [Number(flags.rounds ?? 3), Number(flags.seconds ?? 2)]
  if (!Number.isInteger(rounds) || rounds < 1 || !(seconds > 0)) throw new Failure(usage, 2)
  const dir = resolve(flags.dir ?? join(root, 'target/bench'))
  mkdirSync(dir, { recursive: true })
  checkPlace(dir)
  const rustc = await output('rustc', ['--version'])
  if (rustc === null) throw new Failure('rustc is missing')

  const target = join(root, 'target')
  await run('cargo', ['build', '--quiet', '--release', '--locked', '--package', 'xtask', '--target-dir', target])
  const env = flags.rocksdb || flags.events ? await rocksdb() : {}
  const queues = await build('compare', 'compare', 'millpond-compare', env, flags.rocksdb)
  const events = flags.events
    ? [
        await build('compare-events/theirs', 'compare-events', 'compare-events-theirs', env),
        await build('compare-events/ours', 'compare-events', 'compare-events-ours', env),
      ]
    : []

  const loadBefore = loadavg()[0] ?? 0
  const raw = new RawLoop(join(target, 'release/xtask'), join(dir, 'raw.dat'))
  /** @type {import('../bench/compare.mjs').Figure[]} */
  const figures = []
  try {
    for (let round = 1; round <= rounds; round += 1) {
      say(`round ${round} of ${rounds}`)
      // Before and after, so that a disk that drifts drifts for both.
      figures.push(...(await rawFigures(raw, seconds / 2)))
      figures.push(...(await inFolder(dir, queues, [String(seconds)])).map((line) => JSON.parse(line)))
      for (const program of events) {
        for (const line of await inFolder(dir, program, [String(seconds), String(eventProducers)])) {
          const { way, producers, perSecond } = JSON.parse(line)
          figures.push({ store: 'events', who: way, producers, perSecond })
        }
      }
      figures.push(...(await rawFigures(raw, seconds / 2)))
    }
  } finally {
    await raw.close()
  }

  const where = { device: deviceOf(dir), machine: machine() }
  const all = medians(figures)
  const bars = barsOf(all)
  const result = { payloadBytes, rounds, seconds, loadBefore, rustc, ...where, bars, medians: all }
  process.stdout.write(`\n${place(where)}\n\n${report(all, bars)}\n`)
  const results = join(root, 'bench/results')
  mkdirSync(results, { recursive: true })
  writeFileSync(join(results, 'compare.json'), `${JSON.stringify(result, null, 2)}\n`)
  writeFileSync(join(results, 'compare.svg'), plotOf(result))
  writeDocuments()
  say('written: bench/results/compare.json, .svg and the tables of docs/benchmarks.md')
  return bars.some(({ verdict }) => verdict === 'MISS') ? 1 : 0
})

/**
 * Records per second of the raw loop, with as many of them per sync as there are producers.
 * @param {RawLoop} raw
 * @param {number} seconds
 */
async function rawFigures(raw, seconds) {
  /** @type {import('../bench/compare.mjs').Figure[]} */
  const figures = []
  for (const producers of [1, 16, 64]) {
    const lap = await raw.run(producers * payloadBytes, seconds)
    figures.push({ store: 'disk', who: 'raw', producers, perSecond: (lap.syncs / lap.seconds) * producers })
  }
  return figures
}

/**
 * @param {string} folder The workspace below bench.
 * @param {string} target
 * @param {string} program
 * @param {Record<string, string>} env
 */
async function build(folder, target, program, env, withRocks = false) {
  const at = join(root, 'target', target)
  const manifest = join(root, 'bench', folder, 'Cargo.toml')
  const features = withRocks ? ['--features', 'rocksdb'] : []
  const line = ['build', '--release', '--locked', '--manifest-path', manifest, '--target-dir', at, ...features]
  await run('cargo', line, { env })
  return join(at, 'release', program)
}

/**
 * The lines that a program prints, which gets an empty folder.
 * @param {string} dir
 * @param {string} program
 * @param {string[]} args
 */
async function inFolder(dir, program, args) {
  const folder = mkdtempSync(join(dir, 'compare-'))
  try {
    const text = await output(program, [folder, ...args])
    if (text === null) throw new Failure(`${program} failed`)
    return text.split('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}
