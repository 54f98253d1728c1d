// The demonstration judges the queue; these tests judge the demonstration.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { nextMoment, seeded } from './random.mjs'
import { ResultFile, readResults } from './results.mjs'
import { Tally } from './tally.mjs'
import { verify } from './verify.mjs'

const start = fileURLToPath(new URL('../scripts/start.mjs', import.meta.url))
let dir = ''

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'millpond-demo-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

/** @param {...string} args */
function runStart(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [start, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, stdout, stderr }
}

/** @param {string} text */
function figuresOf(text) {
  const lines = text.split('\n')
  assert.deepEqual([lines.length, lines[1]], [2, ''], `not exactly one line: ${JSON.stringify(text)}`)
  return JSON.parse(lines[0] ?? '')
}

/** Files of all sizes, with names that are hard to handle. @param {number} count */
function fillFolder(count) {
  for (let n = 0; n < count; n += 1) {
    const folder = join(dir, `part-${n % 7}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `file-${n}`), `${n}`.repeat((n * 37) % 5000))
  }
  writeFileSync(join(dir, 'empty'), '')
  writeFileSync(join(dir, 'large'), Buffer.alloc(3_000_000, 5))
  writeFileSync(join(dir, 'two\nlines "quoted" \u00e9 \u{1f986}'), 'odd name')
  mkdirSync(join(dir, '.git'))
  writeFileSync(join(dir, '.git', 'config'), 'left out')
  symlinkSync('empty', join(dir, 'link'))
  return count + 3
}

test('flags that make no sense give the usage and exit code 2', () => {
  const bad = [
    ['--kills', '-1'],
    ['--kills', '1.5'],
    ['--kills', 'many'],
    ['--kills', '1001'],
    ['--kills'],
    ['--durability', 'strong'],
    ['--seed', 'x'],
    ['--dir', join(dir, 'missing')],
    ['--dir', start],
    ['--unknown'],
    ['word'],
  ]
  for (const args of bad) {
    const { status, stdout, stderr } = runStart(...args)
    assert.deepEqual([status, stdout], [2, ''], args.join(' '))
    assert.match(stderr, /Usage: npm start/)
  }
})

for (const durability of ['sync', 'group', 'none']) {
  test(`nothing is lost in 3 kills, durability ${durability}`, () => {
    const files = fillFolder(400)
    const { status, stdout, stderr } = runStart(
      '--json',
      '--dir',
      dir,
      '--kills',
      '3',
      '--durability',
      durability,
      '--seed',
      '7',
    )
    assert.equal(status, 0, stderr)
    const figures = figuresOf(stdout)
    const { pushed, lost, leftInQueue, changed, unreadable, kills } = figures
    assert.deepEqual(
      { files: figures.files, pushed, lost, leftInQueue, changed, unreadable, kills },
      { files, pushed: files, lost: 0, leftInQueue: 0, changed: 0, unreadable: 0, kills: 3 },
    )
    assert.ok(figures.delivered >= files)
    assert.ok(figures.commits > 0)
  })
}

test('an empty folder is nothing to do', () => {
  const { status, stdout, stderr } = runStart('--json', '--dir', dir)
  assert.equal(status, 0, stderr)
  const { files, delivered, lost } = figuresOf(stdout)
  assert.deepEqual({ files, delivered, lost }, { files: 0, delivered: 0, lost: 0 })
})

test('one file and no kill end with one line in plain words', () => {
  writeFileSync(join(dir, 'one'), 'one')
  const { status, stdout, stderr } = runStart('--dir', dir, '--kills', '0')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Nothing was lost: all 1 acknowledged jobs have the right result after 0 kills\.\n$/)
})

test('an interrupted run ends its worker and exits with 130', async () => {
  fillFolder(3000)
  const child = spawn(process.execPath, [start, '--dir', dir, '--kills', '0'], { stdio: ['ignore', 'ignore', 'pipe'] })
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (text) => {
    if (text.includes('durability')) child.kill('SIGINT')
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  assert.equal(code, 130)
})

test('the judge finds a missing, a wrong and an exchanged result, and is not fooled by a changed file', async () => {
  const results = join(dir, 'results.jsonl')
  const folder = join(dir, 'files')
  mkdirSync(folder)
  const file = new ResultFile(results)
  const names = ['right', 'missing', 'wrong', 'exchanged', 'changed', 'gone', 'unreadable']
  for (const [index, name] of names.entries()) {
    const path = join(folder, name)
    writeFileSync(path, name)
    const { mtimeMs } = statSync(path)
    const sha256 = createHash('sha256')
      .update(name === 'wrong' ? 'other' : name)
      .digest('hex')
    const result = { id: index + 1, file: name === 'exchanged' ? 'right' : name }
    if (name === 'unreadable') file.write({ ...result, error: 'ENOENT' })
    else if (name !== 'missing') file.write({ ...result, bytes: name.length, modified: mtimeMs, sha256 })
  }
  file.write({ id: 99, file: 'right', error: 'pushed again' })
  file.close()
  appendFileSync(join(folder, 'changed'), ' since')
  rmSync(join(folder, 'gone'))
  rmSync(join(folder, 'unreadable'))

  const acknowledged = new Map(names.map((name, index) => [index + 1, name]))
  const { complaints, bytes, ...verdict } = await verify({
    dir: folder,
    leftOut: new Set(),
    results,
    acknowledged,
    onProgress: () => {},
  })
  assert.deepEqual(verdict, { right: 1, lost: 3, changed: 2, unreadable: 1, pushedTwice: 1 })
  assert.equal(complaints.length, 3)
  assert.ok(bytes > 0)
})

test('half a line of a killed writer harms neither its own nor the next line', () => {
  const path = join(dir, 'results.jsonl')
  writeFileSync(path, '{"id":1,"file":"a","error":"x"}\n{"id":2,"fi')
  const file = new ResultFile(path)
  file.write({ id: 3, file: 'c', error: 'y' })
  file.close()
  assert.deepEqual([...readResults(path).keys()], [1, 3])
  assert.match(readFileSync(path, 'utf8'), /\{"id":2,"fi\n\{"id":3/)
})

test('an id that is given out twice is an error', () => {
  const tally = new Tally()
  tally.take('pushed 0 1 50')
  assert.throws(() => tally.take('pushed 1 1 60'), /given out twice/)
})

test('counters of all lives add up', () => {
  const tally = new Tally()
  const lives = [
    ['pushed 0 1 500', 'delivered 1', 'commits 1 1', 'commits 2 3'],
    ['delivered 1', 'pushed 1 2 700', 'acked 1', 'commits 3 4'],
  ]
  for (const lines of lives) {
    tally.beginLife()
    for (const line of lines) tally.take(line)
  }
  const { delivered, redelivered, acked, commits, operations, steps, pushSeconds } = tally
  assert.deepEqual(
    { delivered, redelivered, acked, commits, operations, steps, pushSeconds },
    { delivered: 2, redelivered: 1, acked: 1, commits: 5, operations: 7, steps: 3, pushSeconds: 0.0012 },
  )
})

/** The moments of five kills in 6,000 steps. @param {number} seed */
function plan(seed) {
  const random = seeded(seed)
  const found = []
  for (let kills = 5, done = 0; kills > 0; kills -= 1) {
    done = nextMoment({ done, total: 6000, kills, random })
    found.push(done)
  }
  return found
}

test('kills fall into the work, one after another, and a seed repeats them', () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const found = plan(seed)
    assert.deepEqual(
      found,
      found.toSorted((a, b) => a - b),
    )
    assert.ok((found[0] ?? 0) > 0 && (found.at(-1) ?? Infinity) <= 6000 * 0.95 + 5, `seed ${seed}: ${found.join(' ')}`)
  }
  assert.deepEqual(plan(42), plan(42))
  assert.notDeepEqual(plan(42), plan(43))
})
