import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Queue } from '../../src-ts/index.ts'
import { openQueue, rejection, rejections } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

// Wrong on purpose: what a program without types passes.
const wrong = (value: unknown): never => value as never

describe('ids', () => {
  it.each([
    ['2^53 + 1', 2 ** 53 + 1, RangeError],
    ['1.5', 1.5, RangeError],
    ['-1', -1, RangeError],
    ['0', 0, RangeError],
    ['NaN', Number.NaN, RangeError],
    ['Infinity', Number.POSITIVE_INFINITY, RangeError],
    ['2^64', 2 ** 64, RangeError],
    ['"7"', '7', TypeError],
    ['7n', 7n, TypeError],
    ['null', null, TypeError],
    ['undefined', undefined, TypeError],
    ['an object', { valueOf: (): number => 1 }, TypeError],
  ])('O-31: refuses %s and changes nothing', async (_, id, kind) => {
    const queue = await openQueue<number>({ backend: 'memory' })
    await queue.pushMany([1, 2])
    const held = queue.tryReserve()
    expect(await rejection(queue.ack(wrong(id)))).toBeInstanceOf(kind)
    expect(await rejection(queue.ackMany([1, wrong(id)]))).toBeInstanceOf(kind)
    expect(await rejection(queue.get(wrong(id)))).toBeInstanceOf(kind)
    expect(() => queue.nack(wrong(id))).toThrow(kind)
    expect(queue.length).toBe(2)
    expect(queue.readyLength).toBe(1)
    expect(await held?.ack()).toBe(true)
  })

  it('takes the largest ids', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    await queue.push(1)
    expect(await queue.ack(2 ** 53 - 1)).toBe(false)
    expect(await queue.ackMany([2 ** 53 - 1, 2 ** 53 - 2])).toBe(0)
    expect(queue.nack(2 ** 53 - 1)).toBe(false)
    expect(await queue.get(2 ** 53 - 1)).toBeNull()
    expect(queue.length).toBe(1)
  })
})

describe('arguments', () => {
  it('rejects wrong types and values before anything happens', async () => {
    const queue = await openQueue<number>({ backend: 'memory', capacity: 10 })
    const typeErrors: Promise<unknown>[] = [
      queue.push(1, wrong(null)),
      queue.push(1, wrong('options')),
      queue.push(1, { timeoutMs: wrong('5') }),
      queue.push(1, { signal: wrong({}) }),
      queue.push(1, { signal: wrong(null) }),
      queue.push(1, { durability: wrong('strong') }),
      queue.tryPush(1, { durability: wrong(1) }),
      queue.tryPush(1, wrong(7)),
      queue.pushMany(wrong('abc')),
      queue.pushMany(wrong(undefined)),
      queue.pushMany([1], { signal: wrong(1) }),
      queue.reserve(wrong(5)),
      queue.reserve({ unref: wrong(1) }),
      queue.reserve({ timeoutMs: wrong(null) }),
      queue.reserveMany(wrong('3')),
      queue.peek(wrong('3')),
      queue.ackMany(wrong(1)),
      queue.ackMany(wrong(new Set([1]))),
      queue.close(wrong(true)),
      queue.close({ drain: wrong(500) }),
      queue.close({ drain: wrong({}) }),
    ]
    for (const error of await rejections(typeErrors)) expect(error).toBeInstanceOf(TypeError)
    const rangeErrors: Promise<unknown>[] = [
      queue.push(1, { timeoutMs: -1 }),
      queue.push(1, { timeoutMs: Number.NaN }),
      queue.reserve({ timeoutMs: -5 }),
      queue.reserveMany(0),
      queue.reserveMany(1.5),
      queue.reserveMany(2 ** 40),
      queue.peek(0),
      queue.pushMany(Array.from({ length: 11 }, () => 1)),
      queue.close({ drain: { timeoutMs: -1 } }),
    ]
    for (const error of await rejections(rangeErrors)) expect(error).toBeInstanceOf(RangeError)
    expect(() => queue.on(wrong('nothing'), () => {})).toThrow(TypeError)
    expect(() => queue.on('close', wrong(1))).toThrow(TypeError)
    expect(queue.length).toBe(0)
    expect(queue.closed).toBe(false)
    expect(await queue.pushMany([])).toEqual([])
    expect(await queue.pushMany(Array.from({ length: 10 }, () => 1))).toHaveLength(10)
    expect(await queue.reserve({ timeoutMs: Number.POSITIVE_INFINITY })).not.toBeNull()
  })

  it('rejects wrong options of open', async () => {
    const path = join(tempDir(), 'queue')
    const typeErrors: Promise<unknown>[] = [
      Queue.open(wrong(undefined)),
      Queue.open(wrong(7)),
      Queue.open(''),
      Queue.open('a\0b'),
      Queue.open(path, wrong(null)),
      Queue.open(path, { capacity: wrong('10') }),
      Queue.open(path, { durability: wrong('fast') }),
      Queue.open(path, { backend: wrong('sqlite') }),
      Queue.open(path, { codec: wrong({}) }),
      Queue.open(path, { codec: wrong('json') }),
      Queue.open(path, { strict: wrong('yes') }),
      Queue.open(path, { segmentBytes: wrong('1') }),
    ]
    for (const error of await rejections(typeErrors)) expect(error).toBeInstanceOf(TypeError)
    for (const capacity of [0, -1, 1.5, Number.NaN, 2 ** 53]) {
      expect(await rejection(Queue.open(path, { capacity }))).toMatchObject({ code: 'MILLPOND_INVALID' })
    }
    expect(await rejection(Queue.open(path, { segmentBytes: 0 }))).toMatchObject({ code: 'MILLPOND_INVALID' })
    expect(await rejection(Queue.open(path, { codec: { name: '', encode: String, decode: String } }))).toMatchObject({
      code: 'MILLPOND_INVALID',
    })
    await (await Queue.open(path)).close()
  })

  it('refuses what a codec must not return', async () => {
    const codec = {
      name: 'odd',
      encode: (value: unknown) => value as Uint8Array,
      decode: (stored: Uint8Array) => stored,
    }
    const queue = await openQueue<unknown, Uint8Array>({ backend: 'memory', codec })
    expect(await rejection(queue.push(7))).toBeInstanceOf(TypeError)
    expect(await rejection(queue.push(undefined))).toBeInstanceOf(TypeError)
    expect(await rejection(queue.push(new DataView(new ArrayBuffer(1))))).toBeInstanceOf(TypeError)
    expect(await queue.push('text')).toBe(1)
    expect(Buffer.from((await queue.reserve())?.value ?? []).toString()).toBe('text')
  })
})
