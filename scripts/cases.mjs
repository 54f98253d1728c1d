// `just cases`: every case from the field, O-01 to O-32, at its full size. A test belongs to a case by its name (`o_08_...`,
// 'O-08: ...') or by the number in the comment above it. Prints each case with its tests, and the numbers without one.
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './command.mjs'
import { Failure, runMain, say } from './failure.mjs'
import { rocksdb } from './rocksdb.mjs'

const titles = [
  'torn last record after an unclean stop',
  'tail of zeros after a power cut',
  'one flipped bit in the middle',
  'killed during recovery',
  'a segment is missing',
  'disk full while pushing, then space again',
  'disk full: can the consumer still empty the queue',
  'fsync fails once',
  "followers get the leader's error",
  'power cut: is OK on disk',
  'stale lock after kill -9',
  'two handles on one directory',
  'other versions, changed settings',
  'ids after the queue ran empty',
  'a position file older or newer than the data',
  'sizes at their edges',
  'more backlog than capacity',
  'nack: the place of the item',
  'close while the handler keeps nacking',
  'close while somebody waits',
  'a receive that is given up',
  'an item that cannot be decoded',
  'one old item keeps everything',
  'short queue, long life',
  'millions waiting at start',
  'the process does not end',
  'a Worker ends, or close comes, with writes under way',
  'the buffer changes after push',
  'blocked producers',
  'handles that are dropped',
  'values that JavaScript bends',
  'the binary is not there or the wrong one',
]

/** What the tests try less of in every run; what the environment says goes first. */
const fullSize = { MILLPOND_O09: '200', MILLPOND_O24: '1000000' }

/** Built as the crash suite: a million entries take most of an hour on some stores without optimisation. */
const built = ['--locked', '--workspace', '--all-features', '--cargo-profile', 'crash']
const report = join(root, 'target/cases.json')

/** @typedef {{ number: number, name: string, end: string }} Tested */

/** Names of Rust tests by the number in the comment above them. */
function commented() {
  /** @type {Map<string, number>} */
  const found = new Map()
  const names = readdirSync(join(root, 'crates'), { recursive: true, encoding: 'utf8' })
  for (const name of names.filter((path) => path.endsWith('.rs'))) {
    const text = readFileSync(join(root, 'crates', name), 'utf8')
    for (const [, comment = '', test = ''] of text.matchAll(/((?:^ *\/\/\/.*\n)+)(?:^ *#\[.*\n)*^ *fn (\w+)/gm)) {
      const number = /\bO-(\d\d):/.exec(comment)?.[1]
      if (number !== undefined) found.set(test, Number(number))
    }
  }
  return found
}

/**
 * Runs the Rust tests. What they print goes to stderr.
 * @returns {Promise<Tested[]>}
 */
async function rustCases() {
  const byComment = commented()
  const named = [...byComment.keys()].map((name) => `test(/(^|::)${name}$/)`)
  const filter = ['test(/(^|::)o_?\\d\\d_/)', ...named].join(' + ')
  const env = { ...fullSize, ...process.env, ...(await rocksdb()) }
  const args = ['nextest', 'run', ...built, '--profile', 'cases', '--no-fail-fast', '-E', filter]
  const child = spawn('cargo', args, { cwd: root, env, stdio: ['ignore', process.stderr, 'pipe'] })
  let text = ''
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (chunk) => {
    text += chunk
    process.stderr.write(chunk)
  })
  const code = await new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Failure(`cargo: ${error.message}`)))
    child.on('close', resolve)
  })
  // A line for each test, and those that failed once more at the end.
  const lines = text.matchAll(/^ +([A-Z]+) \[[^\]]*\] (?:\([^)]*\) )?(\S+ \S+)$/gm)
  const ends = new Map(Array.from(lines, ([, end = '', name = '']) => [name, end]))
  const tested = Array.from(ends, ([name, end]) => {
    const last = name.split('::').at(-1)?.split(' ').at(-1) ?? ''
    const number = byComment.get(last) ?? Number(/^o_?(\d\d)_/.exec(last)?.[1])
    return { number, name, end: end === 'PASS' ? 'passed' : 'failed' }
  })
  if (code !== 0 && !tested.some(({ end }) => end === 'failed')) throw new Failure(`cargo nextest: exit code ${code}`)
  return tested
}

/**
 * Runs the TypeScript tests.
 * @returns {Promise<Tested[]>}
 */
async function nodeCases() {
  mkdirSync(join(root, 'target'), { recursive: true })
  rmSync(report, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  let failure = null
  await run('npx', ['--no-install', 'vitest', 'run', '-t', 'O-\\d\\d', ...reporters]).catch(
    (error) => (failure = error),
  )
  /** @type {{ testResults: { assertionResults: { fullName: string, status: string }[] }[] }} */
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'))
  const tested = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .map(({ fullName, status }) => ({
      // The innermost: a case may stand in a group that is named by another.
      number: Number(/.*\bO-(\d\d)\b/.exec(fullName)?.[1]),
      name: fullName,
      end: status === 'passed' || status === 'failed' ? status : 'not run',
    }))
    .filter(({ number }) => !Number.isNaN(number))
  if (failure !== null && !tested.some(({ end }) => end === 'failed')) throw failure
  return tested
}

await runMain(async () => {
  const tested = [...(await rustCases()), ...(await nodeCases())]
  say('')
  const none = []
  for (const [place, title] of titles.entries()) {
    const label = `O-${String(place + 1).padStart(2, '0')}`
    const own = tested.filter(({ number }) => number === place + 1)
    if (own.length === 0) none.push(label)
    const counts = ['passed', 'failed', 'not run']
      .map((wanted) => [own.filter(({ end }) => end === wanted).length, wanted])
      .filter(([count]) => count !== 0)
      .map((pair) => pair.join(' '))
    say(`${label}  ${title.padEnd(56)}${counts.join(', ') || 'no test'}`)
  }
  for (const { name, end } of tested) if (end !== 'passed') say(`${end}: ${name}`)
  const failed = tested.filter(({ end }) => end === 'failed').length
  const passed = tested.filter(({ end }) => end === 'passed').length
  say(`cases: ${titles.length - none.length} of ${titles.length} have a test; ${passed} tests passed, ${failed} failed`)
  if (none.length > 0) say(`without a test: ${none.join(', ')}`)
  return failed === 0 ? 0 : 1
})
