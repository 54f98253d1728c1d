// Everything that crashes: the simulated disk, power cuts and disk errors on real file systems, the strict file system, and
// kill -9; then a table of what came out: `node scripts/crash.mjs [--only PART]`. One part after the other; all of them
// run, so that one run shows everything that is wrong.
import { tell } from './command.mjs'
import { Failure, NotRun, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'
import { crashTests } from './planted.mjs'
import { runRig } from './rig.mjs'
import { setUp } from './setup.mjs'
import { runStrictDisk } from './strict-disk.mjs'

const usage = `usage: node scripts/crash.mjs [--only simulated|real|strict|kills]
`

/** The log alone, which is all that these parts try; one set of features, so that nothing is compiled twice. */
const testkit = '--locked -p millpond-testkit --no-default-features --features planted,strict-disk'

async function simulated() {
  const { code, said } = await tell('cargo', [...crashTests, '--no-fail-fast'], { env: { MILLPOND_CRASH: 'full' } })
  if (code !== 0) throw new Failure(`the crash tests: exit code ${code}`)
  return said
}

/** @typedef {{ name: string, run: () => Promise<string>, results: [row: string, line: RegExp][] }} Part */

/** @type {Part[]} */
const parts = [
  { name: 'simulated', run: simulated, results: [['', /^\s*(R\d+) (.* in [\d.]+ s), MILLPOND_SEED=\d+$/]] },
  {
    name: 'real',
    run: () => runRig('block-rig', ['full'], testkit),
    results: [
      ['R4', /^(power cut, .*)$/],
      ['R9', /^(disk error, .*)$/],
      ['cost', /^(cost of a push, .*)$/],
    ],
  },
  { name: 'strict', run: () => runStrictDisk(5000, testkit), results: [['R6', /^((?:addon|control): .*)$/]] },
  {
    name: 'kills',
    run: () => runRig('kills', ['5000'], `${testkit} --bin block-rig`),
    results: [['R7', /^(kill(?: -9 |s: \d).*)$/]],
  },
]

/**
 * The lines of a part that say what came out, each with its row.
 * @param {Part} part
 * @param {string} said
 */
function resultsOf(part, said) {
  return said.split('\n').flatMap((line) =>
    part.results.flatMap(([row, pattern]) => {
      const found = pattern.exec(line)
      // A row that the line names itself comes before the rest.
      return found === null ? [] : [[row || (found[1] ?? ''), found.at(-1) ?? '']]
    }),
  )
}

await runMain(async () => {
  const { only } = flagsOf(process.argv.slice(2), { only: { type: 'string' } }, usage)
  const chosen = parts.filter(({ name }) => only === undefined || name === only)
  if (chosen.length === 0) throw new Failure(`--only ${only}: no such part\n\n${usage}`, 2)
  await setUp({ tests: true })
  const began = performance.now()
  const [table, ends] = [/** @type {string[][]} */ ([]), /** @type {string[]} */ ([])]
  let failed = 0
  for (const part of chosen) {
    say(`\n== ${part.name}`)
    const started = performance.now()
    let end = 'ok'
    try {
      table.push(...resultsOf(part, await part.run()))
    } catch (cause) {
      if (!(cause instanceof Failure || cause instanceof NotRun)) throw cause
      failed += cause instanceof Failure ? 1 : 0
      end = `${cause instanceof Failure ? 'FAILED' : 'not run'}: ${cause.message}`
    }
    ends.push(`${part.name.padEnd(12)}${((performance.now() - started) / 1000).toFixed(0).padStart(6)} s   ${end}`)
  }
  table.sort(([one = ''], [other = '']) => one.localeCompare(other, 'en', { numeric: true }))
  const lines = table.map(([row = '', line = '']) => `${row.padEnd(6)}${line}`)
  const minutes = ((performance.now() - began) / 60_000).toFixed(1)
  process.stdout.write(`${[...lines, '', ...ends, `crash: ${failed} parts failed, ${minutes} minutes`].join('\n')}\n`)
  return failed === 0 ? 0 : 1
})
