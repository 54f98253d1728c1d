import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runScript } from '../helpers/child.ts'
import { tempDir } from '../helpers/tempdir.ts'

it('a reader thread that does not start fails one wait each time, and the account of what is wanted stays right', async () => {
  const log = join(tempDir(), 'strace')
  const script = 'native/scripts/no-reader.mjs'
  const counted = await runScript(script, [], { wrapper: ['strace', '-o', log, '-e', 'trace=clone3'] })
  expect(counted.code).toBe(0)
  // Without -f only the main thread is traced. The last thread that it starts makes the end of the queue; the reader
  // would come in its place.
  const next = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('clone3(')).length
  const inject = ['-e', 'trace=clone3', '-e', `inject=clone3:error=EAGAIN:when=${next}..${next + 1}`]
  const ended = await runScript(script, ['reserve'], { wrapper: ['strace', '-o', log, ...inject], limitMs: 15_000 })
  expect(ended.stderr).toBe('')
  const seen = JSON.parse(ended.stdout) as { codes: string[]; taken: number[]; ready: number; inFlight: number }
  expect(seen.codes).toEqual(['MILLPOND_IO', 'MILLPOND_IO'])
  // The last wait takes what there is when it is its turn.
  expect(seen.taken.slice(0, 3)).toEqual([1, 2, 3])
  expect([seen.inFlight, seen.ready + seen.inFlight]).toEqual([seen.taken.length, 4])
})
