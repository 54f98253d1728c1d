import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isMillpondError } from '../../src-ts/index.ts'
import { drain, openQueue, rejection, sleep, turns } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

describe('capacity', () => {
  it('makes pushes wait, and lets them go in the order of the calls', async () => {
    const queue = await openQueue<number>({ capacity: 3 })
    const order: number[] = []
    const pushes = Array.from({ length: 10 }, async (_, i) => {
      const id = await queue.push(i)
      order.push(i)
      return id
    })
    while (order.length < 3) await turns(1)
    await sleep(20)
    expect(order).toEqual([0, 1, 2])
    expect(queue.stats().waitingPushes).toBe(7)
    expect(await queue.tryPush(99)).toBeNull()
    expect(() => queue.pushSync(99)).toThrow(expect.objectContaining({ code: 'MILLPOND_FULL', retryable: true }))
    for (let i = 0; i < 10; i++) {
      const item = await queue.reserve()
      expect(item?.value).toBe(i)
      expect(await item?.ack()).toBe(true)
    }
    expect(await Promise.all(pushes)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(queue.length).toBe(0)
  })

  it('stores pushMany whole or not at all', async () => {
    const queue = await openQueue<number>({ capacity: 5 })
    await queue.pushMany([1, 2, 3])
    const many = queue.pushMany([4, 5, 6])
    await sleep(20)
    expect(queue.length).toBe(3)
    await queue.ack(1)
    expect(await many).toEqual([4, 5, 6])
    expect(await queue.tryPush(7)).toBeNull()
  })

  it.each(['log', 'memory'] as const)('gives every slot back after a refusal (%s)', async (backend) => {
    const queue = await openQueue<unknown>({ backend, capacity: 2 })
    for (let i = 0; i < 10; i++) expect(isMillpondError(await rejection(queue.push(1n)))).toBe(true)
    for (let i = 0; i < 10; i++) {
      const controller = new AbortController()
      const push = queue.push(i, { signal: controller.signal })
      controller.abort()
      await rejection(push)
    }
    await Promise.all([queue.push(1), queue.push(2)])
    expect(queue.length).toBe(2)
  })

  it('O-17: opens with more than the capacity', async () => {
    const path = join(tempDir(), 'queue')
    const first = await openQueue<number>({ capacity: 10_000 }, path)
    await first.pushMany(Array.from({ length: 5_000 }, (_, i) => i))
    await first.close()
    const queue = await openQueue<number>({ capacity: 100 }, path)
    expect(queue.length).toBe(5_000)
    expect(await queue.tryPush(1)).toBeNull()
    expect(await rejection(queue.push(1, { timeoutMs: 50 }))).toMatchObject({ code: 'MILLPOND_TIMEOUT' })
    let acked = 0
    while (acked < 4_900) {
      const items = await queue.reserveMany(4_900 - acked)
      await Promise.all(items.map((item) => item.ack()))
      acked += items.length
    }
    expect(await queue.tryPush(1)).toBeNull()
    expect(await (await queue.reserve())?.ack()).toBe(true)
    expect(await queue.tryPush(1)).toBeGreaterThan(5_000)
    expect(await queue.tryPush(1)).toBeNull()
    expect(queue.length).toBe(100)
  })

  it('works with a capacity of 1', async () => {
    const queue = await openQueue<number>({ capacity: 1 })
    const pushes = Array.from({ length: 50 }, (_, i) => queue.push(i))
    const values: number[] = []
    for await (const item of queue) {
      values.push(item.value)
      await item.ack()
      if (values.length === 50) break
    }
    await Promise.all(pushes)
    expect(values).toEqual(Array.from({ length: 50 }, (_, i) => i))
  })
})

describe('O-18: nack', () => {
  it('puts an item back in its own place', async () => {
    const queue = await openQueue<string>()
    await queue.pushMany(['a', 'b', 'c'])
    queue.tryReserve()?.nack()
    const x = queue.tryReserve()
    expect([x?.value, x?.deliveries]).toEqual(['a', 2])
    const y = queue.tryReserve()
    y?.nack()
    x?.nack()
    expect(drain(queue).map((item) => item.value)).toEqual(['a', 'b', 'c'])
    for (const id of [1, 2, 3]) queue.nack(id)
    const again = [queue.tryReserve(), queue.tryReserve()]
    again[0]?.nack()
    again[1]?.nack()
    expect(drain(queue).map((item) => item.value)).toEqual(['a', 'b', 'c'])
  })

  it('lets others pass one that is held', async () => {
    const queue = await openQueue<string>()
    await queue.pushMany(['a', 'b', 'c'])
    const held = queue.tryReserve()
    for (const expected of ['b', 'c']) {
      const item = await queue.reserve()
      expect(item?.value).toBe(expected)
      await item?.ack()
    }
    expect(queue.length).toBe(1)
    held?.nack()
    expect(queue.tryReserve()?.value).toBe('a')
  })

  it('never touches a newer delivery', async () => {
    const queue = await openQueue<string>()
    await queue.push('a')
    const old = queue.tryReserve()
    expect(queue.nack(1)).toBe(true)
    const young = queue.tryReserve()
    expect(old?.settled).toBe(false)
    expect(old?.nack()).toBe(false)
    expect(await old?.ack()).toBe(false)
    expect(queue.inFlight().length).toBe(1)
    expect(await young?.ack()).toBe(true)
  })
})
