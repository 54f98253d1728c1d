// Runs every TypeScript snippet of the documents: each one by itself, compiled strictly, in an empty folder, against
// the package as it is built. (Rust snippets are documentation tests of crates/xtask.)
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { tmpdir } from 'node:os'
import { root, run } from './command.mjs'
import { Failure, say } from './failure.mjs'

const sources = join(root, 'target/snippets')
const built = join(sources, 'out')

/** @returns {Promise<void>} */
export async function checkSnippets() {
  rmSync(sources, { recursive: true, force: true })
  mkdirSync(sources, { recursive: true })
  const snippets = documents().flatMap(snippetsOf)
  if (snippets.length === 0) throw new Failure('no document has a snippet')

  for (const { name, text } of snippets) writeFileSync(join(sources, `${name}.ts`), text)
  writeFileSync(
    join(sources, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../tsconfig.json',
      compilerOptions: { noEmit: false, outDir: 'out', rootDir: '.', declaration: false, isolatedDeclarations: false },
      include: ['*.ts'],
    }),
  )
  await run('npx', ['--no-install', 'tsc', '-p', sources])

  for (const { name, place } of snippets) {
    const folder = mkdtempSync(join(tmpdir(), 'millpond-snippet-'))
    try {
      await run(process.execPath, [join(built, `${name}.js`)], { cwd: folder, timeoutMs: 20_000 })
    } catch (error) {
      throw error instanceof Failure ? new Failure(`${place}: ${error.message}`) : error
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  say(`${snippets.length} snippets compiled and run`)
}

/** @returns {string[]} */
function documents() {
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  return [join(root, 'README.md'), ...inDocs.map((path) => join(root, 'docs', path))].filter((path) =>
    path.endsWith('.md'),
  )
}

/** @param {string} path */
function snippetsOf(path) {
  const document = relative(root, path)
  const text = readFileSync(path, 'utf8')
  return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => {
    const line = text.slice(0, match.index).split('\n').length + 1
    return {
      name: `${document.replaceAll(/[^A-Za-z]+/g, '-')}-${line}`,
      place: `${document}:${line}`,
      text: match[1] ?? '',
    }
  })
}
