import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Queue } from '../../src-ts/index.ts'
import { runScript } from '../helpers/child.ts'
import { drain, openQueue } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

/** Names, sizes and times of all files: what a write would change. */
function trace(directory: string): string[] {
  return readdirSync(directory).map((name) => {
    const { size, mtimeNs } = statSync(join(directory, name), { bigint: true })
    return `${name} ${size} ${mtimeNs}`
  })
}

describe.each(['sync', 'group', 'none'] as const)('O-14: ids after the queue ran empty (%s)', (durability) => {
  it('goes on counting after all was acked and the queue was closed', async () => {
    const path = join(tempDir(), 'queue')
    const first = await Queue.open<string>(path, { durability })
    const ids = await first.pushMany(['a', 'b', 'c'])
    await first.ackMany(ids)
    await first.close()

    const queue = await openQueue<string>({ durability }, path)
    const id = await queue.push('d')
    expect(id).toBeGreaterThan(ids[2] as number)
    expect(await queue.ack(ids[2] as number)).toBe(false)
    expect(queue.length).toBe(1)
    expect(drain(queue)).toEqual([{ id, value: 'd' }])
  })

  it('goes on counting after a kill', async () => {
    const path = join(tempDir(), 'queue')
    const ended = await runScript('cases/scripts/empty-and-die.mjs', [path])
    expect(ended.signal).toBe('SIGKILL')
    const ids = JSON.parse(ended.stdout) as number[]
    const queue = await openQueue<string>({ durability }, path)
    expect(queue.length).toBe(0)
    expect(await queue.push('d')).toBeGreaterThan(ids[2] as number)
  })

  it('does not use the id of the newest entry again', async () => {
    const path = join(tempDir(), 'queue')
    const first = await Queue.open<string>(path, { durability })
    const ids = await first.pushMany(['a', 'b', 'c'])
    await first.ack(ids[2] as number)
    await first.close()
    const queue = await openQueue<string>({ durability }, path)
    const id = await queue.push('d')
    expect(id).toBeGreaterThan(ids[2] as number)
    expect(await queue.ack(ids[2] as number)).toBe(false)
    expect(drain(queue).map((item) => item.id)).toEqual([ids[0], ids[1], id])
  })

  it('keeps the number through 50 rounds of opening an empty queue, which write nothing', async () => {
    const path = join(tempDir(), 'queue')
    const first = await Queue.open<string>(path, { durability })
    const last = await first.push('a')
    await first.ack(last)
    await first.close()
    const before = trace(path)
    for (let round = 0; round < 50; round++) {
      const queue = await Queue.open<string>(path, { durability })
      await queue.close()
    }
    expect(trace(path)).toEqual(before)
    const queue = await openQueue<string>({ durability }, path)
    expect(await queue.push('b')).toBe(last + 1)
  })
})
