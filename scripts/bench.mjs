// `npm run bench`: set-up, then the comparison with the raw disk loop.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, usage } from '../bench/options.mjs'
import { checkPlace } from '../bench/place.mjs'
import { root, run } from './command.mjs'
import { runMain, say } from './failure.mjs'
import { setUp } from './setup.mjs'

await runMain(async () => {
  const options = parse(process.argv.slice(2), join(root, 'target/bench'))
  if (options === 'help') {
    process.stdout.write(usage)
    return 0
  }
  const { dir, rounds, seconds, isSaved } = options
  mkdirSync(dir, { recursive: true })
  checkPlace(dir)
  await setUp({ tests: false })
  const target = join(root, 'target')
  await run('cargo', ['build', '--quiet', '--release', '--locked', '--package', 'xtask', '--target-dir', target])

  // Not before set-up has built what they import.
  const { compare } = await import('../bench/durable-push.mjs')
  const { place, table } = await import('../bench/report.mjs')
  const rawLoop = join(target, 'release/xtask')
  const comparison = await compare({ dir, rawLoop, rounds, seconds, onPoint: say })
  process.stdout.write(`\n${place(comparison)}\n\n${table(comparison)}\n`)
  if (isSaved) {
    const { writeDocuments } = await import('../bench/document.mjs')
    const { plot } = await import('../bench/plot.mjs')
    const results = join(root, 'bench/results')
    mkdirSync(results, { recursive: true })
    writeFileSync(join(results, 'durable-push.json'), `${JSON.stringify(comparison, null, 2)}\n`)
    writeFileSync(join(results, 'durable-push.svg'), plot(comparison))
    writeDocuments()
    say('written: bench/results/durable-push.json, .svg and the table of README.md')
  }
  return 0
})
