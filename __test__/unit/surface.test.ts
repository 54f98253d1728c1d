import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import * as millpond from '../../src-ts/index.ts'
import { isMillpondError, json, Queue, Reserved } from '../../src-ts/index.ts'
import { drain, openBytes, openQueue, rejection, sleep, turns } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

describe('the package', () => {
  it('exports what the documentation names', () => {
    expect(Object.keys(millpond).toSorted()).toEqual([
      'DecodeError',
      'Entry',
      'MillpondError',
      'Queue',
      'Reserved',
      'bytes',
      'errorTable',
      'isMillpondError',
      'json',
    ])
  })
})

describe('push and reserve', () => {
  it('delivers in the order of the pushes, with ids from 1', async () => {
    const queue = await openQueue<number>()
    const ids = await Promise.all([1, 2, 3, 4, 5].map((value) => queue.push(value)))
    expect(ids).toEqual([1, 2, 3, 4, 5])
    expect(queue.length).toBe(5)
    const first = await queue.reserve()
    expect(first).toBeInstanceOf(Reserved)
    expect(first?.value).toBe(1)
    expect(first?.deliveries).toBe(1)
    expect(queue.readyLength).toBe(4)
    expect(drain(queue).map((item) => item.value)).toEqual([2, 3, 4, 5])
    expect(queue.tryReserve()).toBeNull()
    expect(queue.length).toBe(5)
  })

  it('sees in every call what was pushed before it in the same turn', async () => {
    const queue = await openQueue<number>({ durability: 'none' })
    const pushes = [queue.push(1), queue.push(2)]
    const third = queue.pushSync(3)
    expect(third).toBe(3)
    expect(queue.length).toBe(3)
    expect(await Promise.all(pushes)).toEqual([1, 2])
    const fourth = queue.push(4)
    const many = queue.pushMany([5, 6])
    const seventh = queue.tryPush(7)
    expect(await Promise.all([fourth, many, seventh])).toEqual([4, [5, 6], 7])
  })

  it.each(['sync', 'group', 'none'] as const)('works with durability %s', async (durability) => {
    const path = join(tempDir(), 'queue')
    const queue = await openQueue<number>({ durability }, path)
    const ids = await Promise.all(Array.from({ length: 300 }, (_, i) => queue.push(i)))
    expect(ids).toEqual(Array.from({ length: 300 }, (_, i) => i + 1))
    for (const item of await queue.reserveMany(100)) await item.ack()
    await queue.close()
    const again = await openQueue<number>({ durability }, path)
    expect(again.length).toBe(200)
    expect(drain(again)).toEqual(Array.from({ length: 200 }, (_, i) => ({ id: i + 101, value: i + 100 })))
  })

  it('takes the durability of one push', async () => {
    const queue = await openQueue<number>()
    const ids = await Promise.all([
      queue.push(1),
      queue.push(2, { durability: 'none' }),
      queue.push(3, { durability: 'sync' }),
      queue.push(4),
      queue.pushMany([5, 6], { durability: 'none' }),
      queue.tryPush(7, { durability: 'sync' }),
    ])
    expect(ids).toEqual([1, 2, 3, 4, [5, 6], 7])
    expect(drain(queue).map((item) => item.value)).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it('settles chains of pushes with durability none without starving timers', async () => {
    const queue = await openBytes({ durability: 'none', capacity: 10_000_000 })
    const payload = new Uint8Array(8)
    // The first one waits for the disk: it begins a segment.
    await queue.push(payload)
    const began = performance.now()
    let fired = Number.POSITIVE_INFINITY
    const timer = setTimeout(() => {
      fired = performance.now()
    }, 20)
    let pushed = 0
    while (fired === Number.POSITIVE_INFINITY && performance.now() - began < 10_000) {
      await queue.push(payload)
      pushed++
    }
    clearTimeout(timer)
    expect(fired - began).toBeLessThan(2_000)
    expect(pushed).toBeGreaterThan(10)
  })

  it('crosses more pushes of one turn than the stage holds', async () => {
    const queue = await openBytes()
    const ids = await Promise.all(
      Array.from({ length: 5_000 }, (_, i) => queue.push(new Uint8Array(1 + (i % 700)).fill(i))),
    )
    expect(ids).toEqual(Array.from({ length: 5_000 }, (_, i) => i + 1))
    expect(
      drain(queue).every(({ value }, i) => value.length === 1 + (i % 700) && value.every((byte) => byte === i % 256)),
    ).toBe(true)
  })

  it('gives null when nothing is there', async () => {
    const queue = await openQueue()
    expect(queue.tryReserve()).toBeNull()
    expect(await queue.reserve({ timeoutMs: 5 })).toBeNull()
    expect(await queue.reserveMany(3, { timeoutMs: 0 })).toEqual([])
    const began = performance.now()
    expect(await queue.poll()).toBeNull()
    expect(performance.now() - began).toBeGreaterThan(90)
    expect(await queue.get(1)).toBeNull()
    expect(await queue.peek()).toEqual([])
  })

  it('gives waiting reserves their items first come, first served', async () => {
    const queue = await openQueue<number>()
    const order: number[] = []
    const waiting = [0, 1, 2, 3].map(async (place) => {
      const item = await queue.reserve()
      order.push(place)
      return item?.value
    })
    await turns(3)
    await queue.pushMany([10, 11, 12, 13])
    expect(await Promise.all(waiting)).toEqual([10, 11, 12, 13])
    expect(order).toEqual([0, 1, 2, 3])
  })

  it('gives reserveMany what is there, and takes no more than was asked for', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2, 3, 4, 5])
    const some = await queue.reserveMany(3)
    expect(some.map((item) => item.value)).toEqual([1, 2, 3])
    const rest = await queue.reserveMany(100)
    expect(rest.map((item) => item.value)).toEqual([4, 5])
    // The demand that was left is withdrawn: what comes next stays ready.
    await queue.push(6)
    await sleep(20)
    expect(queue.readyLength).toBe(1)
  })

  it('keeps an aborted reserve from taking an item', async () => {
    const queue = await openQueue<number>()
    for (let round = 0; round < 200; round++) {
      const controller = new AbortController()
      const reserved = queue.reserve({ signal: controller.signal })
      const pushed = queue.push(round)
      if (round % 3 === 0) await pushed
      if (round % 3 === 1) await turns(1)
      controller.abort(new Error('enough'))
      const outcome = await reserved.catch((error: unknown) => error as Error)
      const item = outcome instanceof Error ? await queue.reserve() : outcome
      expect(item?.value).toBe(round)
      expect(await item?.ack()).toBe(true)
    }
    expect(queue.length).toBe(0)
    expect(queue.inFlight()).toEqual([])
  })

  it('aborts and times out', async () => {
    const queue = await openQueue<number>({ capacity: 1 })
    const reason = new Error('no longer')
    expect(await rejection(queue.reserve({ signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(await rejection(queue.push(1, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(await rejection(queue.pushMany([1], { signal: AbortSignal.abort(reason) }))).toBe(reason)
    // Before the crossing.
    const early = new AbortController()
    const staged = [queue.push(1, { signal: early.signal })]
    early.abort(reason)
    expect(await rejection(staged[0] as Promise<number>)).toBe(reason)
    expect(queue.length).toBe(0)
    expect(await queue.push(2)).toBe(1)
    // While it waits for room.
    const late = new AbortController()
    const waiting = queue.push(3, { signal: late.signal })
    const many = queue.pushMany([4], { signal: late.signal })
    await turns(2)
    late.abort(reason)
    expect(await rejection(waiting)).toBe(reason)
    expect(await rejection(many)).toBe(reason)
    expect(isMillpondError(await rejection(queue.push(5, { timeoutMs: 5 })), 'MILLPOND_TIMEOUT')).toBe(true)
    expect(isMillpondError(await rejection(queue.pushMany([5], { timeoutMs: 5 })), 'MILLPOND_TIMEOUT')).toBe(true)
    expect(queue.stats().waitingPushes).toBe(0)
    // Once it has an id the abort is ignored.
    const after = new AbortController()
    await (await queue.reserve())?.ack()
    const pushed = queue.push(6, { signal: after.signal, timeoutMs: 1_000 })
    const id = await pushed
    after.abort(reason)
    expect(await pushed).toBe(id)
    expect(queue.length).toBe(1)
  })

  it('withdraws single pushes from between others that are staged', async () => {
    const queue = await openQueue<string>()
    const controller = new AbortController()
    const pushes = [
      queue.push('a'),
      queue.push('bb', { signal: controller.signal }),
      queue.push('ccc'),
      queue.push('dddd', { timeoutMs: 1_000 }),
      queue.push('e', { signal: controller.signal }),
    ]
    controller.abort()
    const outcomes = await Promise.allSettled(pushes)
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'rejected',
    ])
    expect(drain(queue).map((item) => item.value)).toEqual(['a', 'ccc', 'dddd'])
  })
})

describe('settling', () => {
  it('settles once, whoever comes first', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2, 3])
    const [a, b, c] = await queue.reserveMany(3)
    const acks = [a?.ack(), a?.ack()]
    expect(a?.settled).toBe(true)
    expect(a?.nack()).toBe(false)
    expect(await Promise.all(acks)).toEqual([true, false])
    expect(b?.nack()).toBe(true)
    expect(b?.nack()).toBe(false)
    expect(await b?.ack()).toBe(false)
    expect(await queue.ack(3)).toBe(true)
    expect(await queue.ack(3)).toBe(false)
    expect(c?.settled).toBe(false)
    expect(await c?.ack()).toBe(false)
    expect(c?.settled).toBe(true)
    expect(queue.length).toBe(1)
  })

  it('acks many in one go', async () => {
    const queue = await openQueue<number>()
    const ids = await queue.pushMany(Array.from({ length: 10_000 }, (_, i) => i))
    const items = await queue.reserveMany(10_000)
    expect(items.length).toBeGreaterThan(0)
    expect((await Promise.all(items.map((item) => item.ack()))).every(Boolean)).toBe(true)
    expect(queue.length).toBe(10_000 - items.length)
    expect(await queue.ackMany(ids)).toBe(10_000 - items.length)
    expect(await queue.ackMany([1, 2, 999_999])).toBe(0)
    expect(await queue.ackMany([])).toBe(0)
    expect(queue.length).toBe(0)
  })

  it('settles by id after detach', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2])
    const [a, b] = await queue.reserveMany(2)
    expect(a?.detach()).toBe(1)
    expect(a?.settled).toBe(true)
    expect(a?.nack()).toBe(false)
    a?.[Symbol.dispose]()
    expect(queue.inFlight().map((entry) => entry.id)).toEqual([1, 2])
    expect(queue.nack(1)).toBe(true)
    expect(queue.nack(1)).toBe(false)
    expect(b?.detach()).toBe(2)
    expect(await queue.ack(2)).toBe(true)
    expect(queue.length).toBe(1)
  })

  it('nacks when disposed, unless settled', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2])
    {
      const item = queue.tryReserve()
      item?.[Symbol.dispose]()
      item?.[Symbol.dispose]()
    }
    expect(queue.readyLength).toBe(2)
    const item = queue.tryReserve()
    expect(item?.deliveries).toBe(2)
    const ack = item?.ack()
    await item?.[Symbol.asyncDispose]()
    expect(await ack).toBe(true)
    expect(queue.length).toBe(1)
  })

  it('reads bytes and value once', async () => {
    const decode = vi.fn((stored: Uint8Array) => JSON.parse(Buffer.from(stored).toString()) as { a: number })
    const queue = await openQueue<{ a: number }>({ codec: { ...json<{ a: number }>(), decode } })
    await queue.push({ a: 1 })
    const item = await queue.reserve()
    expect(decode).not.toHaveBeenCalled()
    expect(item?.value).toBe(item?.value)
    expect(item?.decode()).toEqual({ ok: true, value: { a: 1 } })
    expect(decode).toHaveBeenCalledTimes(1)
    expect(item?.bytes).toBe(item?.bytes)
    expect(item?.bytes.byteOffset).toBe(0)
    expect(item?.bytes.buffer.byteLength).toBe(item?.bytes.byteLength)
  })

  it('does not stop at an item that cannot be decoded', async () => {
    const path = join(tempDir(), 'queue')
    const raw = { ...json<unknown>(), encode: (value: unknown) => String(value) }
    const queue = await openQueue<unknown>({ codec: raw }, path)
    await queue.push('{"ok":1}')
    await queue.push('{broken')
    await queue.push(Buffer.from('') as unknown)
    const [good, bad, empty] = await queue.reserveMany(3)
    expect(good?.value).toEqual({ ok: 1 })
    let thrown: unknown
    try {
      void bad?.value
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(millpond.DecodeError)
    expect(thrown).toMatchObject({ code: 'MILLPOND_DECODE', id: 2, name: 'DecodeError' })
    expect(bad?.decode()).toMatchObject({ ok: false, error: thrown })
    expect(Buffer.from(bad?.bytes ?? []).toString()).toBe('{broken')
    expect(empty?.decode().ok).toBe(false)
    expect((await queue.get(2))?.decode().ok).toBe(false)
    expect(await bad?.ack()).toBe(true)
  })
})

describe('looking', () => {
  it('gets, peeks and lists without reserving', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany(Array.from({ length: 1_000 }, (_, i) => i))
    await queue.ackMany([1, 3, 500])
    expect((await queue.get(2))?.value).toBe(1)
    expect(await queue.get(3)).toBeNull()
    expect(await queue.get(5_000)).toBeNull()
    expect((await queue.peek(3)).map((entry) => entry.id)).toEqual([2, 4, 5])
    expect((await queue.peek(5_000)).length).toBe(997)
    const ids: number[] = []
    for await (const entry of queue.entries()) ids.push(entry.id)
    expect(ids.length).toBe(997)
    expect(ids).toEqual(ids.toSorted((a, b) => a - b))
    expect(queue.readyLength).toBe(997)
  })

  it('counts', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2, 3])
    const item = await queue.reserve()
    await turns(1)
    const [flight] = queue.inFlight()
    expect(flight).toMatchObject({ id: 1, deliveries: 1 })
    expect(flight?.ageMs).toBeGreaterThanOrEqual(0)
    item?.nack()
    const stats = queue.stats()
    expect(stats).toMatchObject({ length: 3, ready: 3, inFlight: 0, pushed: 3, acked: 0, nacked: 1, delivered: 1 })
    expect(stats.poisoned).toBe(false)
    expect(stats.store).toMatchObject({ syncs: expect.any(Number), liveBytes: expect.any(Number) })
    expect(queue.recovery).toMatchObject({ clean: true, droppedTailBytes: 0, damage: [] })
  })
})

describe('for await', () => {
  it('takes items until the queue is closed', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2, 3])
    const seen: number[] = []
    const loop = (async () => {
      for await (const item of queue) {
        seen.push(item.value)
        await item.ack()
      }
    })()
    await queue.push(4)
    while (queue.length > 0) await turns(1)
    await queue.close()
    await loop
    expect(seen).toEqual([1, 2, 3, 4])
  })

  it('returns the current item and a next() under way when it is left', async () => {
    const queue = await openQueue<number>()
    await queue.pushMany([1, 2])
    for await (const item of queue) {
      expect(item.id).toBe(1)
      break
    }
    expect(queue.readyLength).toBe(2)
    await expect(
      (async () => {
        for await (const item of queue) throw new Error(`handler of ${item.id}`)
      })(),
    ).rejects.toThrow('handler of 1')
    expect(queue.readyLength).toBe(2)
    expect(queue.tryReserve()?.deliveries).toBe(3)
    queue.nack(1)
    const iterator = queue[Symbol.asyncIterator]()
    await iterator.next()
    await iterator.next()
    const under = iterator.next()
    await iterator.return?.()
    expect(await under).toEqual({ done: true, value: undefined })
    await queue.push(3)
    await sleep(10)
    // The first belongs to whoever holds it; the current one and the one under way are ready.
    expect(queue.inFlight().map((entry) => entry.id)).toEqual([1])
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })
})

describe('opening', () => {
  it('O-12: refuses the same directory a second time', async () => {
    const path = join(tempDir(), 'queue')
    const queue = await openQueue({}, path)
    const error = await rejection(Queue.open(path))
    expect(error).toMatchObject({ code: 'MILLPOND_LOCKED', retryable: true, outcome: 'not-done' })
    await queue.close()
    await (await Queue.open(path)).close()
  })

  it('refuses another codec by name', async () => {
    const path = join(tempDir(), 'queue')
    const queue = await openQueue({}, path)
    await queue.push(1)
    await queue.close()
    expect(await rejection(Queue.open(path, { codec: millpond.bytes() }))).toMatchObject({
      code: 'MILLPOND_CODEC_MISMATCH',
    })
  })

  it('refuses backends that are not in this build, and a file', async () => {
    for (const backend of ['redb', 'sled', 'rocksdb'] as const) {
      expect(await rejection(Queue.open(tempDir(), { backend }))).toMatchObject({
        code: 'MILLPOND_UNSUPPORTED',
        message: expect.stringContaining(backend) as string,
      })
    }
    const file = import.meta.filename
    expect(await rejection(Queue.open(file))).toMatchObject({ code: 'MILLPOND_NOT_A_DIRECTORY' })
  })

  it('keeps nothing with the memory backend', async () => {
    const path = join(tempDir(), 'queue')
    const queue = await openQueue<number>({ backend: 'memory' }, path)
    await queue.push(1)
    await queue.close()
    const again = await openQueue<number>({ backend: 'memory' }, path)
    expect(again.length).toBe(0)
  })
})
