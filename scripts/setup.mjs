// Brings a fresh clone to the point where Millpond runs. Uses nothing but Node itself, because nothing else is
// there yet. What is done already is found by a stamp and skipped, so that a second start takes no time.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { output, root, run } from './command.mjs'
import { Failure, say } from './failure.mjs'

const oldest = { node: [20, 19], cargo: [1, 95] }
const nextest = '0.9.143'

/**
 * @param {{ tests: boolean }} options With `tests`, also what only the tests need.
 * @returns {Promise<void>}
 */
export async function setUp({ tests }) {
  const cargo = await output('cargo', ['--version'])
  const npm = await output('npm', ['--version'])
  require('Node', process.versions.node, oldest.node, 'install Node 20.19 or newer')
  require('cargo', cargo, oldest.cargo, 'install Rust 1.95 or newer (rustup toolchain install stable)')
  if (npm === null) throw new Failure('npm is missing: it comes with Node')
  say(`set-up: Node ${process.versions.node}, npm ${npm}, ${cargo}`)

  const wanted = [{ program: 'cc', packages: ['gcc', 'libc6-dev'], why: 'the linker of Rust programs' }]
  if (tests) wanted.push({ program: 'strace', packages: ['strace'], why: 'the tests count fsync calls with it' })
  if (tests) {
    wanted.push({
      program: 'valgrind',
      packages: ['valgrind', 'libc6-dbg'],
      why: 'the tests count instructions with it',
    })
  }
  await installMissing(wanted)

  if (tests && (await output('cargo', ['nextest', '--version'])) === null) {
    say(`set-up: building cargo-nextest ${nextest}, the test runner (a few minutes, once)`)
    await run('cargo', ['install', 'cargo-nextest', '--locked', '--version', nextest])
  }

  await unlessStamped(join(root, 'node_modules/.millpond-setup'), ['package-lock.json'], () => true, {
    doing: 'set-up: installing npm packages (npm ci)',
    act: () => run('npm', ['ci', '--no-audit', '--no-fund']),
  })
  await unlessStamped(
    join(root, 'target/millpond-build'),
    [
      'Cargo.toml',
      'Cargo.lock',
      'package.json',
      'tsconfig.json',
      'tsconfig.build.json',
      'crates/millpond',
      'crates/millpond-node',
      'src-ts',
    ],
    () => existsSync(join(root, 'dist/index.js')) && readdirSync(root).some((name) => name.endsWith('.node')),
    {
      doing: 'set-up: building the addon and dist/ (npm run build)',
      act: () => run('npm', ['run', 'build']),
    },
  )
}

/**
 * @param {string} name
 * @param {string | null} version
 * @param {readonly number[]} least
 * @param {string} remedy
 */
function require(name, version, least, remedy) {
  const found = /(\d+)\.(\d+)/.exec(version ?? '')
  if (found === null) throw new Failure(`${name} is missing: ${remedy}`)
  const [major, minor] = [Number(found[1]), Number(found[2])]
  const [leastMajor = 0, leastMinor = 0] = least
  if (major < leastMajor || (major === leastMajor && minor < leastMinor)) {
    throw new Failure(`${name} ${found[0]} is too old: ${remedy}`)
  }
}

/** @param {readonly { program: string, packages: string[], why: string }[]} wanted */
async function installMissing(wanted) {
  const missing = wanted.filter(({ program }) => !isOnPath(program))
  if (missing.length === 0) return
  const packages = missing.flatMap((one) => one.packages)
  for (const { program, why } of missing) say(`set-up: ${program} is missing: ${why}`)
  if (process.getuid?.() !== 0 || !isOnPath('apt-get')) {
    throw new Failure(`install these system packages first: ${packages.join(' ')}`)
  }
  say(`set-up: installing system packages: ${packages.join(' ')}`)
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  await run('apt-get', ['update', '-qq'], { env })
  await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], { env })
}

/** @param {string} program */
function isOnPath(program) {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program)))
}

/**
 * Acts unless the stamp says that it was done for exactly these sources, and the products are there.
 * @param {string} stamp
 * @param {readonly string[]} sources
 * @param {() => boolean} isThere
 * @param {{ doing: string, act: () => Promise<void> }} step
 */
async function unlessStamped(stamp, sources, isThere, step) {
  const before = digest(sources)
  const isDone = existsSync(stamp) && readFileSync(stamp, 'utf8') === before
  if (isDone && isThere()) return
  say(step.doing)
  const started = performance.now()
  await step.act()
  mkdirSync(dirname(stamp), { recursive: true })
  // A build may write its own lock file or generated sources: the stamp is of what is there afterwards.
  writeFileSync(stamp, digest(sources))
  say(`set-up: done in ${((performance.now() - started) / 1000).toFixed(1)} s`)
}

/** @param {readonly string[]} sources */
function digest(sources) {
  const hash = createHash('sha256').update(`${process.arch} ${process.platform} ${process.versions.modules}\n`)
  for (const source of sources) {
    for (const file of filesOf(join(root, source))) {
      hash
        .update(`${relative(root, file)}\n`)
        .update(readFileSync(file))
        .update('\n')
    }
  }
  return hash.digest('hex')
}

/**
 * @param {string} path
 * @returns {string[]}
 */
function filesOf(path) {
  if (!existsSync(path)) return []
  try {
    const names = readdirSync(path).filter((name) => name !== 'target' && name !== 'tests')
    return names.toSorted().flatMap((name) => filesOf(join(path, name)))
  } catch {
    return path.endsWith('.node') ? [] : [path]
  }
}
