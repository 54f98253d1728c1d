import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Queue } from '../../src-ts/index.ts'
import { drain, openQueue, rejection, rejections, sleep, turns } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

describe('close()', () => {
  it('O-20: answers everybody who waits', async () => {
    const path = join(tempDir(), 'queue')
    const empty = await openQueue<number>()
    const full = await openQueue<number>({ capacity: 2 }, path)
    await full.pushMany([1, 2])
    const reserves = [empty.reserve(), empty.reserve(), empty.reserve(), empty.reserveMany(5), empty.poll()]
    const pushes = Array.from({ length: 50 }, (_, i) => full.push(i))
    const many = full.pushMany([1, 2])
    await turns(2)
    const began = performance.now()
    const closings = [empty.close(), full.close()]
    const errors = rejections([...pushes, many])
    expect(await Promise.all(reserves)).toEqual([null, null, null, [], null])
    for (const error of await errors) expect(error).toMatchObject({ code: 'MILLPOND_CLOSED', outcome: 'not-done' })
    await Promise.all(closings)
    expect(performance.now() - began).toBeLessThan(1_000)
    await Promise.all([empty.close(), full.close({ drain: true }), full[Symbol.asyncDispose]()])
    const again = await openQueue<number>({}, path)
    expect(drain(again).map((item) => item.value)).toEqual([1, 2])
  })

  it('answers later calls with the same code, never by throwing where a promise is returned', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2, 3])
    const held = await queue.reserve()
    await queue.close()
    expect(queue.closed).toBe(true)
    const closed = { code: 'MILLPOND_CLOSED', outcome: 'not-done', retryable: false }
    for (const call of [
      () => queue.push(1),
      () => queue.push(1, { timeoutMs: 5 }),
      () => queue.push(1, { signal: new AbortController().signal }),
      () => queue.tryPush(1),
      () => queue.pushMany([1]),
      () => queue.ack(1),
      () => queue.ackMany([1]),
      () => queue.get(1),
      () => queue.peek(),
      () => queue.entries().next(),
      () => held?.ack() ?? Promise.resolve(),
    ]) {
      expect(await rejection(call())).toMatchObject(closed)
    }
    expect(() => queue.pushSync(1)).toThrow(expect.objectContaining(closed))
    expect(() => queue.flushSync()).toThrow(expect.objectContaining(closed))
    expect(await queue.reserve()).toBeNull()
    expect(await queue.reserveMany(2)).toEqual([])
    expect(await queue.poll()).toBeNull()
    expect(queue.tryReserve()).toBeNull()
    expect(queue.nack(1)).toBe(false)
    expect(held?.nack()).toBe(false)
    expect(held?.value).toBe(1)
    for await (const item of queue) expect.unreachable(String(item.id))
    expect(queue.length).toBe(3)
    expect(queue.readyLength).toBe(3)
    expect(queue.inFlight()).toEqual([])
    expect(queue.stats().pushed).toBe(3)
  })

  it('O-27: finishes what was called before it', async () => {
    for (let round = 0; round < 20; round++) {
      const path = join(tempDir(), 'queue')
      const queue = await Queue.open<number>(path)
      await queue.pushMany([1, 2, 3])
      const [a, b] = await queue.reserveMany(2)
      let isClosed = false
      const settled: string[] = []
      const pushes = Array.from({ length: 100 }, (_, i) =>
        queue.push(i).then(
          () => settled.push('id') > 0 && !isClosed,
          () => settled.push('closed') > 0 && !isClosed,
        ),
      )
      const ack = a?.ack()
      const closing = queue.close().then(() => {
        isClosed = true
      })
      expect(await ack).toBe(true)
      expect((await Promise.all(pushes)).every(Boolean)).toBe(true)
      await closing
      const again = await Queue.open<number>(path)
      expect(again.length).toBe(2 + settled.filter((outcome) => outcome === 'id').length)
      expect(again.tryReserve()?.id).toBe(b?.id)
      await again.close()
    }
  })

  it('O-27: resolves last, also when what settled at once waits for the next turn of the loop', async () => {
    for (let round = 0; round < 20; round++) {
      const queue = await openQueue<number>({ backend: 'memory', durability: 'none' })
      await queue.push(0)
      const item = await queue.reserve()
      const ended: string[] = []
      const note = (name: string, promise: Promise<unknown> | undefined): Promise<unknown> | undefined =>
        promise?.then(() => ended.push(name))
      await turns(1)
      // The turn begins with a settlement and is long over at the next.
      await queue.push(1)
      for (const began = performance.now(); performance.now() < began + 3;) continue
      const all = [note('push', queue.push(2)), note('ack', item?.ack()), note('many', queue.pushMany([3, 4]))]
      await Promise.all([...all, note('close', queue.close())])
      expect(ended).toHaveLength(4)
      expect(ended.at(-1)).toBe('close')
    }
  })

  it('tells listeners once', async () => {
    const queue = await openQueue()
    let calls = 0
    const listener = (): void => {
      calls++
    }
    const removed = (): void => expect.unreachable()
    queue.on('close', listener).on('close', removed).off('close', removed)
    await Promise.all([queue.close(), queue.close()])
    expect(calls).toBe(1)
  })
})

describe('O-19: close({ drain })', () => {
  it('stops intake and ends when everything is acked', async () => {
    const queue = await openQueue<number>({ capacity: 10 })
    await queue.pushMany(Array.from({ length: 10 }, (_, i) => i))
    const waiting = rejection(queue.push(99))
    await turns(2)
    const seen: number[] = []
    const consumer = (async () => {
      for await (const item of queue) {
        seen.push(item.value)
        await sleep(1)
        // Offered once more.
        if (item.value % 3 === 0 && item.deliveries === 1) item.nack()
        else await item.ack()
      }
    })()
    await queue.close({ drain: true })
    await consumer
    expect(await waiting).toMatchObject({ code: 'MILLPOND_CLOSED' })
    expect(await rejection(queue.push(1))).toMatchObject({ code: 'MILLPOND_CLOSED' })
    expect(new Set(seen).size).toBe(10)
    expect(queue.length).toBe(0)
    expect(queue.closed).toBe(true)
  })

  it('is called in the body of a loop, which goes on and ends by itself, and awaited behind it', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    await queue.pushMany([1, 2, 3, 4])
    let closed: Promise<void> | undefined
    const seen: number[] = []
    for await (const item of queue) {
      if (item.value === 2) closed = queue.close({ drain: true })
      seen.push(item.value)
      expect(await item.ack()).toBe(true)
    }
    await closed
    expect(seen).toEqual([1, 2, 3, 4])
    expect(queue.length).toBe(0)
  })

  it('that is awaited in the body of a loop ends at its limit, and the item stays', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    await queue.pushMany([1, 2])
    for await (const item of queue) {
      const error = await rejection(queue.close({ drain: { timeoutMs: 20 } }))
      expect(error).toMatchObject({ code: 'MILLPOND_TIMEOUT' })
      expect(await rejection(item.ack())).toMatchObject({ code: 'MILLPOND_CLOSED' })
    }
    expect(queue.length).toBe(2)
  })

  it('is through at once when nothing is there', async () => {
    const queue = await openQueue<number>()
    const reserved = queue.reserve()
    await queue.close({ drain: { timeoutMs: 1_000 } })
    expect(await reserved).toBeNull()
  })

  it('waits for pushes that have an id and for items in flight', async () => {
    const queue = await openQueue<number>()
    await queue.ack(await queue.push(0))
    const pushed = queue.push(1)
    let isClosed = false
    const closing = queue.close({ drain: true }).then(() => {
      isClosed = true
    })
    expect(await pushed).toBe(2)
    const item = await queue.reserve()
    await sleep(10)
    expect(isClosed).toBe(false)
    expect(await queue.ack(item?.detach() ?? 0)).toBe(true)
    await closing
  })

  it('gives up at its limit, after closing', async () => {
    const path = join(tempDir(), 'queue')
    const queue = await openQueue<number>({}, path)
    await queue.pushMany([1, 2])
    const held = await queue.reserve()
    expect(await rejection(queue.close({ drain: { timeoutMs: 30 } }))).toMatchObject({ code: 'MILLPOND_TIMEOUT' })
    expect(queue.closed).toBe(true)
    expect(await rejection(held?.ack() ?? Promise.resolve())).toMatchObject({ code: 'MILLPOND_CLOSED' })
    const again = await openQueue<number>({}, path)
    expect(again.length).toBe(2)
  })

  it('is cut short by close()', async () => {
    const queue = await openQueue<number>()
    await queue.push(1)
    const draining = queue.close({ drain: true })
    await turns(2)
    await queue.close()
    await draining
    expect(queue.length).toBe(1)
  })
})
