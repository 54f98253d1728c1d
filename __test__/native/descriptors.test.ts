import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Queue } from '../../src-ts/index.ts'
import { rejection } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

/** What this process has open below `directory`. */
function openBelow(directory: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const target = readlinkSync(join('/proc/self/fd', descriptor))
      return target.startsWith(directory) ? [target] : []
    } catch {
      // Closed meanwhile: the one that lists.
      return []
    }
  })
}

it('a closed queue keeps no descriptor, although somebody keeps the queue', async () => {
  const directory = tempDir()
  const path = join(directory, 'queue')
  const closed: Queue<number>[] = []
  for (let round = 0; round < 20; round++) {
    const queue = await Queue.open<number>(path)
    await queue.push(round)
    expect(openBelow(directory)).not.toEqual([])
    await queue.close()
    closed.push(queue)
  }
  expect(openBelow(directory)).toEqual([])
  expect(closed.map((queue) => queue.length)).toEqual(closed.map((_, round) => round + 1))
  expect(closed[0]?.stats().pushed).toBe(1)
})

it('an open that is refused keeps no descriptor and no lock', async () => {
  const directory = tempDir()
  const path = join(directory, 'queue')
  for (let round = 0; round < 20; round++) {
    const outcomes = await Promise.allSettled([Queue.open(path), Queue.open(path), Queue.open(`${path}/`)])
    const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    expect(opened).toHaveLength(1)
    for (const reason of refused) expect(reason).toMatchObject({ code: 'MILLPOND_LOCKED' })
    expect(await rejection(Queue.open(path))).toMatchObject({ code: 'MILLPOND_LOCKED' })
    await opened[0]?.close()
  }
  expect(openBelow(directory)).toEqual([])
})
