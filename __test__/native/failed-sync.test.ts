import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runScript } from '../helpers/child.ts'
import { tempDir } from '../helpers/tempdir.ts'

interface Seen {
  readonly stored: number[]
  readonly failures: readonly Record<string, unknown>[]
  readonly read: number
  readonly ack: string
  readonly poisoned: boolean
  readonly late: number
  readonly delivered: number[]
  readonly old: string
  readonly closed: string
}

it('one failed sync stops the queue for good; the next open in the process takes over', async () => {
  const directory = tempDir()
  const log = join(directory, 'strace')
  const path = join(directory, 'queue')
  // Only the commit thread calls fdatasync; the lease is the first call, so the fourth push fails.
  const inject = ['-e', 'trace=fdatasync,fsync', '-e', 'inject=fdatasync:error=EIO:when=5']
  const wrapper = ['strace', '-f', '-y', '-o', log, ...inject]
  const ended = await runScript('native/scripts/failed-sync.mjs', [path], { wrapper })
  expect(ended.stderr).toBe('')
  expect(ended.code).toBe(0)
  const seen = JSON.parse(ended.stdout) as Seen
  expect(seen.stored).toEqual([1, 2, 3])
  const system = { errno: 5, operation: 'fdatasync', path: 'string' }
  expect(seen.failures[0]).toEqual({ code: 'MILLPOND_IO', outcome: 'unknown', ...system })
  expect(seen.failures.slice(1)).toEqual(
    Array.from({ length: 8 }, () => ({ code: 'MILLPOND_POISONED', outcome: 'not-done', ...system })),
  )
  expect(seen).toMatchObject({ read: 0, ack: 'MILLPOND_POISONED', poisoned: true })
  // The entry of the failed sync may be there or not; what was acknowledged is.
  expect(seen.delivered.filter((id) => id !== 4)).toEqual([1, 2, 3, seen.late])
  expect(seen.late).toBeGreaterThan(12)
  expect(seen.old).toMatch(/MILLPOND_(POISONED|CLOSED)/)
  expect(seen.closed).toBe('MILLPOND_POISONED')

  // No write and no sync reached the file whose sync had failed, except the one with which the next open reads it.
  const calls = readFileSync(log, 'utf8').split('\n')
  const failed = calls.findIndex((call) => call.includes('EIO'))
  const file = /<([^>]+\.seg)>/.exec(calls[failed] ?? '')?.[1] ?? 'no file'
  expect(calls.slice(failed + 1).filter((call) => call.includes('fdatasync(') && call.includes(file))).toEqual([])
})
