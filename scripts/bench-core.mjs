// `just bench-core`: criterion over the core; then one result and its plots in bench/results.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join, resolve } from 'node:path'
import { groupsOf, plots, table } from '../bench/core.mjs'
import { writeDocuments } from '../bench/document.mjs'
import { checkPlace } from '../bench/place.mjs'
import { place } from '../bench/report.mjs'
import { output, root, run } from './command.mjs'
import { deviceOf, machine } from './device.mjs'
import { Failure, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { rocksdb } from './rocksdb.mjs'

const usage = `Usage: node scripts/bench-core.mjs [options]

Criterion over the core's stores, policies, batches, producers and codecs, beside the raw loop; writes
bench/results/core.json and core-*.svg.

  --full        more and longer samples
  --features F  stores beside mem, log and redb: sled, rocksdb or sled,rocksdb
  --dir D       where the files go (default: target/bench); refused when that is in memory
`

await runMain(async () => {
  const boolean = /** @type {const} */ ({ type: 'boolean', default: false })
  const string = /** @type {const} */ ({ type: 'string' })
  const flags = flagsOf(process.argv.slice(2), { full: boolean, features: string, dir: string }, usage)
  const dir = resolve(flags.dir ?? join(root, 'target/bench'))
  mkdirSync(dir, { recursive: true })
  checkPlace(dir)
  const rustc = await output('rustc', ['--version'])
  if (rustc === null) throw new Failure('rustc is missing')

  const home = join(root, 'target/bench-core')
  rmSync(home, { recursive: true, force: true })
  const features = flags.features === undefined ? [] : ['--features', flags.features]
  const bench = ['bench', '--locked', '--package', 'millpond-bench', '--target-dir', join(root, 'target'), ...features]
  const env = flags.features?.includes('rocksdb') ? await rocksdb() : {}
  await run('cargo', [...bench, '--no-run'], { env })
  const loadBefore = loadavg()[0] ?? 0
  await run('cargo', bench, {
    env: {
      ...env,
      CRITERION_HOME: home,
      MILLPOND_BENCH_DIR: dir,
      ...(flags.full ? { MILLPOND_BENCH_FULL: '1' } : {}),
    },
  })

  const length = flags.full ? /** @type {const} */ ('full') : /** @type {const} */ ('quick')
  const where = { device: deviceOf(dir), machine: machine() }
  const result = { payloadBytes: 256, length, loadBefore, rustc, ...where, groups: groupsOf(home) }
  process.stdout.write(`\n${place(where)}\n\n${table(result)}\n`)
  const results = join(root, 'bench/results')
  mkdirSync(results, { recursive: true })
  writeFileSync(join(results, 'core.json'), `${JSON.stringify(result, null, 2)}\n`)
  for (const [name, svg] of plots(result)) writeFileSync(join(results, name), svg)
  writeDocuments()
  say('written: bench/results/core.json, core-*.svg and the tables of docs/benchmarks.md')
  return 0
})
