// Brings a fresh clone to the point where Millpond runs. Uses nothing but Node itself, because nothing else is
// there yet. What is done already is found by a stamp and skipped, so that a second start takes no time.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { output, root, run } from './command.mjs'
import { Failure, say } from './failure.mjs'
import { rocksdb } from './rocksdb.mjs'

const oldest = { node: [20, 19], cargo: [1, 95] }
const nextest = '0.9.143'

/**
 * @param {{ tests: boolean, rocks?: boolean }} options With `tests`, also what only the tests need; with `rocks`,
 *   RocksDB, whose place is in the environment afterwards.
 * @returns {Promise<void>}
 */
export async function setUp({ tests, rocks = false }) {
  const cargo = await output('cargo', ['--version'])
  const npm = await output('npm', ['--version'])
  require('Node', process.versions.node, oldest.node, 'install Node 20.19 or newer')
  require('cargo', cargo, oldest.cargo, 'install Rust 1.95 or newer (rustup toolchain install stable)')
  if (npm === null) throw new Failure('npm is missing: it comes with Node')
  say(`set-up: Node ${process.versions.node}, npm ${npm}, ${cargo}`)

  const wanted = [need('cc', ['gcc', 'libc6-dev'], 'the linker of Rust programs')]
  if (tests) {
    wanted.push(need('strace', ['strace'], 'the tests count fsync calls with it'))
    wanted.push(need('valgrind', ['valgrind', 'libc6-dbg'], 'the tests count instructions with it'))
  }
  if (tests && process.platform === 'linux' && process.getuid?.() === 0) {
    const why = 'the tests cut the power of disks that it makes (as root)'
    wanted.push(need('qemu-storage-daemon', ['qemu-utils'], why))
    wanted.push(need('mkfs.ext4', ['e2fsprogs'], why), need('mkfs.xfs', ['xfsprogs'], why))
  }
  if (rocks) {
    wanted.push(need('c++', ['g++'], 'RocksDB is C++'))
    wanted.push({
      name: 'libclang',
      isThere: hasLibclang(),
      packages: ['libclang-dev'],
      why: 'the binding of RocksDB is made from its header with it',
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
  if (rocks) Object.assign(process.env, await rocksdb())

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

/**
 * A program of the system.
 * @param {string} name
 * @param {string[]} packages
 * @param {string} why
 */
function need(name, packages, why) {
  return { name, isThere: isOnPath(name), packages, why }
}

/** @param {readonly { name: string, isThere: boolean, packages: string[], why: string }[]} wanted */
async function installMissing(wanted) {
  const missing = wanted.filter(({ isThere }) => !isThere)
  if (missing.length === 0) return
  const packages = missing.flatMap((one) => one.packages)
  for (const { name, why } of missing) say(`set-up: ${name} is missing: ${why}`)
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

/** Whether the library is in one of the places where bindgen looks for it. */
function hasLibclang() {
  if (process.env['LIBCLANG_PATH']) return true
  const llvm = existsSync('/usr/lib') ? readdirSync('/usr/lib').filter((name) => name.startsWith('llvm')) : []
  const folders = ['/usr/lib', '/usr/lib64', '/usr/local/lib', `/usr/lib/${arch()}-linux-gnu`]
  return [...folders, ...llvm.map((name) => `/usr/lib/${name}/lib`)]
    .filter((folder) => existsSync(folder))
    .some((folder) => readdirSync(folder).some((name) => /^libclang(-\d[\d.]*)?\.so/.test(name)))
}

/** The processor as the system's folders name it. */
function arch() {
  return process.arch === 'arm64' ? 'aarch64' : 'x86_64'
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
