import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runScript } from '../helpers/child.ts'
import { drain, openQueue } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

/** Runs producers under strace until the last push was acknowledged; counts the calls that make data durable. */
async function trace(durability: string, producers: number, pushes: number) {
  const directory = tempDir()
  const log = join(directory, 'strace')
  const path = join(directory, 'queue')
  const args = [path, durability, String(producers), String(pushes)]
  const wrapper = ['strace', '-f', '-o', log, '-e', 'trace=fdatasync,fsync']
  const ended = await runScript('native/scripts/pushes.mjs', args, { wrapper })
  expect(ended.stderr).toBe('')
  const ids = JSON.parse(ended.stdout) as number[]
  const syncs = readFileSync(log, 'utf8').match(
    /(fsync|fdatasync)\(\d+\)\s+= 0|<\.\.\. (fsync|fdatasync) resumed>\)\s+= 0/g,
  )
  return { path, ids, syncs: syncs?.length ?? 0 }
}

/** Every acknowledged push is there after the process was killed. */
async function expectAll(path: string, ids: readonly number[]): Promise<void> {
  const queue = await openQueue({ capacity: 1_000_000 }, path)
  expect(drain(queue).map((item) => item.id)).toEqual([...ids].sort((a, b) => a - b))
}

describe('syncs of the operating system, counted by strace', () => {
  it.each(['sync', 'group'])('has one at least for each of 100 awaited pushes (%s)', async (durability) => {
    const { path, ids, syncs } = await trace(durability, 1, 100)
    expect(ids).toHaveLength(100)
    expect(syncs).toBeGreaterThanOrEqual(100)
    await expectAll(path, ids)
  })

  it('shares them between 64 producers in group', async () => {
    const { path, ids, syncs } = await trace('group', 64, 100)
    expect(ids).toHaveLength(6_400)
    expect(syncs).toBeGreaterThanOrEqual(100)
    // 100 rounds of 64 pushes each take one commit, plus what the first segments cost.
    expect(syncs).toBeLessThan(1_000)
    await expectAll(path, ids)
  })

  it('has none per push with durability none', async () => {
    const { path, ids, syncs } = await trace('none', 1, 1_000)
    expect(syncs).toBeLessThan(100)
    await expectAll(path, ids)
  })
})
