// `just instructions`: counts the instructions of the hot paths and compares them with bench/results/instructions.json;
// with --accept it writes that file. A step of `npm test`.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  compare,
  difference,
  libc,
  processorOf,
  readCounts,
  repeatability,
  tolerance,
  totalOf,
} from '../bench/instructions.mjs'
import { writeDocuments } from '../bench/document.mjs'
import { output, root, run } from './command.mjs'
import { Failure, runMain, say } from './failure.mjs'
import { flagsOf } from './flags.mjs'

const usage = `Usage: node scripts/instructions.mjs [--accept]

Counts instructions of the hot paths and fails where one takes ${tolerance * 100} % more than was recorded.

  --accept  record what was counted
`
const file = join(root, 'bench/results/instructions.json')
const program = join(root, 'target/instructions/hot-paths')

await runMain(async () => {
  const { accept } = flagsOf(process.argv.slice(2), { accept: { type: 'boolean', default: false } }, usage)
  const build = 'build --quiet --locked --profile instructions --package millpond-bench --bin hot-paths --target-dir'
  await run('cargo', [...build.split(' '), join(root, 'target')])
  const valgrind = await output('valgrind', ['--version'])
  const rustc = await output('rustc', ['--version'])
  const list = await output(program, [])
  if (valgrind === null || rustc === null || list === null) throw new Failure('valgrind, rustc or hot-paths is missing')
  const toolchain = { rustc, libc: libc(), valgrind, cpu: processorOf(readFileSync('/proc/cpuinfo', 'utf8')) }

  /** @type {Record<string, number>} */
  const paths = {}
  for (const line of list.split('\n')) {
    const [name = '', operations = ''] = line.split(' ')
    const [first, second] = [await count(name), await count(name)]
    const lower = Math.min(first, second)
    if (Math.max(first, second) / lower - 1 > repeatability) {
      throw new Failure(`${name} was counted twice and gave ${first} and ${second}: it does not repeat itself`)
    }
    paths[name] = Number((lower / Number(operations)).toFixed(1))
  }

  if (accept) {
    const counts = { toolchain, unit: 'instructions per operation', paths }
    writeFileSync(file, `${JSON.stringify(counts, null, 2)}\n`)
    writeDocuments()
    say('written: bench/results/instructions.json and the table of docs/benchmarks.md')
    return 0
  }
  const recorded = readCounts(file)
  const other = difference(recorded.toolchain, toolchain)
  if (other !== '') {
    process.stdout.write(`instructions: not compared: other toolchain (${other})\n`)
    return 0
  }
  const lines = compare(recorded.paths, paths)
  process.stdout.write(`instructions per operation  recorded        now\n${lines.map(({ text }) => text).join('\n')}\n`)
  if (lines.some(({ verdict }) => verdict === 'worse' || verdict === 'unknown')) {
    throw new Failure('the instructions are not what was recorded; if that is meant: just instructions --accept')
  }
  if (lines.some(({ verdict }) => verdict === 'better'))
    say('better than recorded: just instructions --accept keeps it')
  return 0
})

/**
 * Runs one path under callgrind, in an empty folder and a fixed environment: its size moves the stack.
 * @param {string} name
 */
async function count(name) {
  mkdirSync(join(root, 'target/bench'), { recursive: true })
  const folder = mkdtempSync(join(root, 'target/bench/instructions-'))
  try {
    const counts = join(folder, 'callgrind.out')
    mkdirSync(join(folder, 'files'))
    const valgrind = 'valgrind --quiet --tool=callgrind --collect-atstart=no --toggle-collect=*hot_paths*counted*'
    await run(
      'env',
      [
        '-i',
        'PATH=/usr/local/bin:/usr/bin:/bin',
        ...valgrind.split(' '),
        `--callgrind-out-file=${counts}`,
        program,
        name,
        'files',
      ],
      {
        cwd: folder,
        timeoutMs: 120_000,
      },
    )
    return totalOf(readFileSync(counts, 'utf8'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
