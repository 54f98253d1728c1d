import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Queue } from '../../src-ts/index.ts'
import { runScript } from '../helpers/child.ts'
import { drain, openQueue, rejection, sleep } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

it('O-20: close settles everybody who waits, and the process ends with code 0', async () => {
  const directory = tempDir()
  const full = join(directory, 'full')
  const ended = await runScript('cases/scripts/close-while-waiting.mjs', [join(directory, 'empty'), full])
  expect(ended.stderr).toBe('')
  expect(ended.code).toBe(0)
  const seen = JSON.parse(ended.stdout) as { items: unknown[]; codes: unknown[]; count: number; tookMs: number }
  expect(seen).toMatchObject({ items: [null, null, null], codes: ['MILLPOND_CLOSED'], count: 50 })
  // 100 ms on a quiet machine; a hang is what this test is after.
  expect(seen.tookMs).toBeLessThan(5_000)
  const queue = await openQueue<string>({}, full)
  expect(drain(queue).map((item) => item.value)).toEqual(['a', 'b'])
})

it('O-20: calls after close reject with the same code and never throw', async () => {
  const queue = await Queue.open<string>(join(tempDir(), 'queue'), { capacity: 2 })
  await queue.pushMany(['a', 'b'])
  const item = await queue.reserve()
  await queue.close()
  await sleep(10)
  const closed = { code: 'MILLPOND_CLOSED', outcome: 'not-done' }
  expect(await rejection(queue.push('c'))).toMatchObject(closed)
  expect(await rejection(queue.pushMany(['c']))).toMatchObject(closed)
  expect(await rejection(queue.tryPush('c'))).toMatchObject(closed)
  expect(await rejection(item?.ack() ?? Promise.resolve())).toMatchObject(closed)
  expect(await rejection(queue.ack(1))).toMatchObject(closed)
  expect(await rejection(queue.ackMany([1]))).toMatchObject(closed)
  expect(await rejection(queue.get(1))).toMatchObject(closed)
  expect(await rejection(queue.peek(1))).toMatchObject(closed)
  expect(await rejection(queue.entries().next())).toMatchObject(closed)
  expect(() => queue.pushSync('c')).toThrow(expect.objectContaining(closed))
  expect(() => queue.flushSync()).toThrow(expect.objectContaining(closed))
  expect(await queue.reserve()).toBeNull()
  expect(await queue.reserveMany(5)).toEqual([])
  expect(await queue.poll()).toBeNull()
  expect(queue.tryReserve()).toBeNull()
  expect(item?.nack()).toBe(false)
  expect(queue.nack(1)).toBe(false)
  expect(queue.length).toBe(2)
  expect(queue.closed).toBe(true)
  await queue.close()
})

it('O-20: pushes and acks that were called before close settle before it does', async () => {
  const path = join(tempDir(), 'queue')
  const first = await Queue.open<number>(path)
  await first.pushMany([0, 1, 2])
  const held = await first.reserve()
  const order: string[] = []
  const push = first.push(3).then(() => order.push('push'))
  const ack = held?.ack().then(() => order.push('ack'))
  const close = first.close().then(() => order.push('close'))
  await Promise.all([push, ack, close])
  expect(order.at(-1)).toBe('close')
  expect(order).toHaveLength(3)
  const queue = await openQueue<number>({}, path)
  expect(drain(queue).map((item) => item.value)).toEqual([1, 2, 3])
})

it('O-20: many pushes and at once close: each resolves and is there, or rejects and is not', async () => {
  for (let round = 0; round < 20; round++) {
    const path = join(tempDir(), 'queue')
    const first = await Queue.open<number>(path, { capacity: 60 })
    const pushes = Array.from({ length: 100 }, (_, n) => first.push(n))
    const close = first.close()
    const settled = await Promise.allSettled(pushes)
    await close
    const stored = settled.flatMap((push, n) => (push.status === 'fulfilled' ? [n] : []))
    for (const push of settled) {
      if (push.status === 'rejected') expect(push.reason).toMatchObject({ code: 'MILLPOND_CLOSED' })
    }
    const queue = await openQueue<number>({}, path)
    expect(drain(queue).map((item) => item.value)).toEqual(stored)
  }
})
