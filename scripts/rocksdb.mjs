// RocksDB's C++ is a quarter of an hour and more on two cores, so it is built once, with one set of options, into a
// cache outside the clone. Every build afterwards links that library. By hand: eval "$(node scripts/rocksdb.mjs)"
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { output, root, run } from './command.mjs'
import { Failure, runMain, say } from './failure.mjs'

const library = 'librocksdb.a'

/**
 * Finds the built library or builds it.
 * @returns {Promise<Record<string, string>>} The environment that makes cargo link it.
 */
export async function rocksdb() {
  const { ROCKSDB_LIB_DIR: given, ROCKSDB_STATIC: isStatic } = process.env
  if (given) return { ROCKSDB_LIB_DIR: given, ...(isStatic && { ROCKSDB_STATIC: isStatic }) }
  const { version, sources } = await librocksdbSys()
  const folder = join(cacheRoot(), 'rocksdb', `${version}-${process.platform}-${process.arch}`)
  if (!existsSync(join(folder, library))) await build(folder, version, sources)
  return { ROCKSDB_LIB_DIR: folder, ROCKSDB_STATIC: '1' }
}

/** What outlives the clone: $MILLPOND_CACHE, or `millpond` in the user's cache. */
function cacheRoot() {
  const { MILLPOND_CACHE: own, XDG_CACHE_HOME: users } = process.env
  return own || join(users || join(homedir(), '.cache'), 'millpond')
}

/** The package that holds the C++, as Cargo.lock has it, and how many files of C++ it compiles. */
async function librocksdbSys() {
  const text = await output('cargo', ['metadata', '--locked', '--format-version', '1', '--all-features'])
  if (text === null) throw new Failure('cargo metadata failed: run it by hand to see why')
  /** @type {{ packages: { name: string, version: string, manifest_path: string }[] }} */
  const { packages } = JSON.parse(text)
  const found = packages.find(({ name }) => name === 'librocksdb-sys')
  if (found === undefined) throw new Failure('Cargo.lock has no librocksdb-sys')
  const list = readFileSync(join(dirname(found.manifest_path), 'rocksdb_lib_sources.txt'), 'utf8')
  return { version: found.version, sources: list.trim().split('\n').length }
}

/**
 * @param {string} folder
 * @param {string} version
 * @param {number} sources
 */
async function build(folder, version, sources) {
  say(`set-up: building RocksDB (librocksdb-sys ${version}) into ${folder}`)
  say('set-up: this is once for this machine and takes 15 to 40 minutes on two cores')
  const started = performance.now()
  const target = join(root, 'target/rocksdb')
  // What an interrupted build left: its objects would be counted, and compiled again all the same.
  rmSync(target, { recursive: true, force: true })
  const progress = setInterval(() => {
    const minutes = Math.round((performance.now() - started) / 60_000)
    say(`set-up: RocksDB: ${objects(target)} of ${sources} files after ${minutes} min`)
  }, 60_000)
  try {
    await run('cargo', ['build', '--locked', '-p', 'millpond', '--features', 'rocksdb', '--target-dir', target])
  } finally {
    clearInterval(progress)
  }
  const built = outFolders(target)
    .map((out) => join(out, library))
    .find(existsSync)
  if (built === undefined) throw new Failure(`cargo made no ${library} in ${target}`)
  mkdirSync(folder, { recursive: true })
  // Under another name first: a second clone at the same time sees the whole library or none.
  const partial = join(folder, `${library}.${process.pid}`)
  copyFileSync(built, partial)
  renameSync(partial, join(folder, library))
  rmSync(target, { recursive: true, force: true })
  say(`set-up: RocksDB built in ${((performance.now() - started) / 60_000).toFixed(1)} min`)
}

/** @param {string} target */
function objects(target) {
  return outFolders(target)
    .flatMap((out) => readdirSync(out, { recursive: true, encoding: 'utf8' }))
    .filter((name) => name.endsWith('.o')).length
}

/** @param {string} target */
function outFolders(target) {
  const scripts = join(target, 'debug/build')
  if (!existsSync(scripts)) return []
  return readdirSync(scripts)
    .filter((name) => name.startsWith('librocksdb-sys-'))
    .map((name) => join(scripts, name, 'out'))
    .filter((out) => existsSync(out))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    const env = await rocksdb()
    for (const [name, value] of Object.entries(env)) process.stdout.write(`export ${name}='${value}'\n`)
    return 0
  })
}
