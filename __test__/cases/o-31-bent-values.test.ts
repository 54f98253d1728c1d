import { describe, expect, it } from 'vitest'
import type { Queue } from '../../src-ts/index.ts'
import { drain, openQueue, rejection } from '../helpers/queues.ts'

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = [value]
  return value
}

const circular: { self?: unknown } = {}
circular.self = circular

describe('O-31: values that JavaScript bends', () => {
  const refused: [string, unknown][] = [
    ['BigInt', { n: 1n }],
    ['undefined as the whole', undefined],
    ['undefined in an array', [undefined]],
    ['NaN', { n: Number.NaN }],
    ['Infinity', [Number.POSITIVE_INFINITY]],
    ['-0', { n: -0 }],
    ['Map', new Map([[1, 2]])],
    ['Set', { set: new Set([1]) }],
    ['a typed array', { bytes: new Uint8Array(4) }],
    ['an ArrayBuffer', new ArrayBuffer(4)],
    ['a circular value', circular],
    ['a class instance', { job: new (class Job {})() }],
    ['a function', { run: () => 1 }],
    ['a symbol', { mark: Symbol('mark') }],
    [
      'a toJSON that throws',
      {
        toJSON() {
          throw new Error('no')
        },
      },
    ],
    ['10,000 levels', nested(10_000)],
  ]

  it.each(refused)('refuses %s before an id or a slot is used', async (_, value) => {
    const queue = await openQueue<unknown>({ capacity: 3 })
    expect(await rejection(queue.push(value))).toMatchObject({ code: 'MILLPOND_ENCODE', outcome: 'not-done' })
    expect(await rejection(queue.tryPush(value))).toMatchObject({ code: 'MILLPOND_ENCODE' })
    expect(await rejection(queue.pushMany([1, value]))).toMatchObject({ code: 'MILLPOND_ENCODE' })
    expect(() => queue.pushSync(value)).toThrow(expect.objectContaining({ code: 'MILLPOND_ENCODE' }))
    expect(queue.length).toBe(0)
    expect(await queue.push('next')).toBe(1)
  })

  it('stores what it can faithfully, and applies toJSON', async () => {
    const queue = await openQueue<unknown>()
    const odd = JSON.parse('{"__proto__": {"polluted": true}, "plain": 1}') as unknown
    const values = ['lone \ud800 surrogate', odd, new Date(0), { gone: undefined, kept: null }, '']
    await queue.pushMany(values)
    const items = drain(queue as Queue<unknown>)
    expect(items[0]?.value).toBe('lone \ud800 surrogate')
    expect(Object.keys(items[1]?.value as object)).toEqual(['__proto__', 'plain'])
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    expect(items.slice(2).map((item) => item.value)).toEqual(['1970-01-01T00:00:00.000Z', { kept: null }, ''])
  })

  const badIds: [unknown, ErrorConstructor][] = [
    [2 ** 53 + 1, RangeError],
    [1.5, RangeError],
    [-1, RangeError],
    [Number.NaN, RangeError],
    [2 ** 64, RangeError],
    ['7', TypeError],
    [7n, TypeError],
    [null, TypeError],
  ]

  it.each(badIds)('refuses %s as an id and changes nothing', async (id, constructor) => {
    const queue = await openQueue<string>()
    await queue.push('a')
    const bad = id as number
    expect(await rejection(queue.ack(bad))).toBeInstanceOf(constructor)
    expect(await rejection(queue.ackMany([1, bad]))).toBeInstanceOf(constructor)
    expect(await rejection(queue.get(bad))).toBeInstanceOf(constructor)
    expect(() => queue.nack(bad)).toThrow(constructor)
    expect(queue.length).toBe(1)
  })

  it('removes exactly the ids it is given', async () => {
    const queue = await openQueue<number>()
    const ids = await queue.pushMany([0, 1, 2, 3, 4, 5])
    expect(ids.every((id, n) => Number.isSafeInteger(id) && id === (ids[0] as number) + n)).toBe(true)
    expect(await queue.ackMany([ids[3] as number])).toBe(1)
    expect(drain(queue).map((item) => item.value)).toEqual([0, 1, 2, 4, 5])
  })
})
