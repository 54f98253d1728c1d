import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Queue } from '../../src-ts/index.ts'
import { openQueue, rejection, sleep } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

it('O-17: opens with more backlog than capacity, and the ack that makes room opens exactly one slot', async () => {
  const path = join(tempDir(), 'queue')
  const first = await Queue.open<number>(path, { capacity: 10_000 })
  await first.pushMany(Array.from({ length: 5_000 }, (_, n) => n))
  await first.close()

  const queue = await openQueue<number>({ capacity: 100 }, path)
  expect(queue.length).toBe(5_000)
  expect(await queue.tryPush(-1)).toBeNull()
  const signal = AbortSignal.timeout(50)
  expect(await rejection(queue.push(-1, { signal }))).toBe(signal.reason)

  for (let left = 4_900; left > 0;) {
    const items = await queue.reserveMany(Math.min(left, 500))
    await Promise.all(items.map((item) => item.ack()))
    left -= items.length
  }
  expect(queue.length).toBe(100)
  expect(await queue.tryPush(-1)).toBeNull()
  const waiting = queue.push(-2)
  let hasSettled = false
  void waiting.then(() => {
    hasSettled = true
  })
  await sleep(50)
  expect(hasSettled).toBe(false)
  const item = await queue.reserve()
  expect(item?.value).toBe(4_900)
  await item?.ack()
  expect(await waiting).toBeGreaterThan(5_000)
  expect(await queue.tryPush(-3)).toBeNull()
})

it('O-17: works with capacity 1 and refuses capacity 0', async () => {
  const path = join(tempDir(), 'queue')
  const first = await Queue.open<number>(path, { capacity: 10 })
  await first.pushMany([1, 2, 3])
  await first.close()
  const error = await rejection(Queue.open(path, { capacity: 0 }))
  expect(error).toMatchObject({ code: 'MILLPOND_INVALID', outcome: 'not-done' })

  const queue = await openQueue<number>({ capacity: 1 }, path)
  expect(await queue.tryPush(4)).toBeNull()
  expect(await queue.ackMany([1, 2])).toBe(2)
  expect(await queue.tryPush(4)).toBeNull()
  expect(await queue.ack(3)).toBe(true)
  expect(await queue.tryPush(4)).not.toBeNull()
  expect(await queue.tryPush(5)).toBeNull()
})
