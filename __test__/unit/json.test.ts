import { createContext, runInContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { isMillpondError, json } from '../../src-ts/index.ts'
import { openQueue, rejection } from '../helpers/queues.ts'

class Point {
  x = 1
}

function deep(levels: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

const circular: { self?: unknown } = {}
circular.self = { again: circular }

const refused: Record<string, unknown> = {
  'undefined as a whole': undefined,
  'undefined in an array': [1, undefined],
  'a hole in an array': new Array<number>(2),
  NaN: Number.NaN,
  Infinity: { a: [Number.POSITIVE_INFINITY] },
  '-Infinity': Number.NEGATIVE_INFINITY,
  '-0': { a: -0 },
  BigInt: { a: 1n },
  Map: new Map([[1, 2]]),
  Set: { a: new Set() },
  Buffer: Buffer.from('x'),
  'a typed array': new Float64Array(1),
  'an ArrayBuffer': new ArrayBuffer(1),
  'a class instance': { a: new Point() },
  'a RegExp': /x/,
  'an Error': new Error('x'),
  'a Promise': Promise.resolve(),
  'a boxed number': Object(1) as unknown,
  'a circular value': circular,
  'a symbol': { a: Symbol('x') },
  'a function': { a: () => 1 },
  'a function as a whole': () => 1,
  'a toJSON that throws': {
    toJSON: () => {
      throw new Error('never')
    },
  },
  'a toJSON that throws a TypeError': {
    toJSON: () => {
      throw new TypeError('never')
    },
  },
  'a toJSON that gives undefined': { toJSON: () => undefined },
  'a toJSON that gives NaN': { a: { toJSON: () => Number.NaN } },
  'a toJSON that gives a Map': { toJSON: () => new Map() },
  'an invalid Date': { at: new Date(Number.NaN) },
  'a getter that throws': {
    get a() {
      throw new Error('never')
    },
  },
  '10,000 levels': deep(10_000),
  '1,000,000 levels': deep(1_000_000),
}

const kept: Record<string, unknown> = {
  null: null,
  true: true,
  'an empty string': '',
  'a lone surrogate': 'a\uD800b',
  'a lone surrogate in a key': { '\uDFFF': 1 },
  'other planes': '🙂 中文 é',
  'large numbers': [Number.MAX_SAFE_INTEGER, Number.MIN_VALUE, Number.MAX_VALUE, 1e21, 0.1],
  'nested values': { a: [{ b: [[], {}] }], 'with space': null },
  '900 levels': deep(900),
  'an object without a prototype': Object.assign(Object.create(null) as object, { a: 1 }),
  'an object of another realm': runInContext('({ a: [1, { b: 2 }] })', createContext()),
}

describe('json()', () => {
  it.each(Object.entries(refused))('refuses %s before anything is stored', async (_, value) => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    for (const call of [
      () => queue.push(value),
      () => queue.tryPush(value),
      () => queue.pushMany([1, value]),
      () => queue.push(value, { timeoutMs: 1 }),
    ]) {
      const error = await rejection(call())
      expect(error).toMatchObject({ code: 'MILLPOND_ENCODE', outcome: 'not-done', retryable: false })
    }
    expect(() => queue.pushSync(value)).toThrow()
    expect(queue.length).toBe(0)
    expect(await queue.push(1)).toBe(1)
  })

  it.each(Object.entries(kept))('keeps %s', async (_, value) => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    await queue.push(value)
    expect((await queue.reserve())?.value).toEqual(value)
  })

  it('applies toJSON, once for each value', async () => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    let calls = 0
    const counted = {
      toJSON(key: string) {
        calls++
        return { key, at: new Date(0) }
      },
    }
    await queue.push({ when: new Date(0), list: [counted], gone: undefined, url: new URL('https://example.org/') })
    expect(calls).toBe(1)
    expect((await queue.reserve())?.value).toEqual({
      when: '1970-01-01T00:00:00.000Z',
      list: [{ key: '0', at: '1970-01-01T00:00:00.000Z' }],
      url: 'https://example.org/',
    })
  })

  it('leaves out undefined fields, and refuses them if strict', async () => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    await queue.push({ a: undefined, b: 1 })
    expect(Object.keys((await queue.reserve())?.value as object)).toEqual(['b'])
    const strict = await openQueue<unknown>({ backend: 'memory', codec: json({ strict: true }) })
    for (const value of [{ a: undefined }, { [Symbol('a')]: 1 }, { at: new Date(0), a: undefined }]) {
      expect(isMillpondError(await rejection(strict.push(value)), 'MILLPOND_ENCODE')).toBe(true)
    }
    expect(await strict.push({ a: null })).toBe(1)
  })

  it('treats __proto__ as a key like any other', async () => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    const plain: unknown = JSON.parse('{"__proto__":{"polluted":true},"a":1}')
    const copied: unknown = JSON.parse('{"__proto__":{"polluted":true},"a":1}')
    Object.assign(copied as object, { at: new Date(0) })
    for (const value of [plain, copied]) {
      await queue.push(value)
      const got = (await queue.reserve())?.value as Record<string, unknown>
      expect(Object.hasOwn(got, '__proto__')).toBe(true)
      expect(got['polluted']).toBeUndefined()
      expect(Object.getPrototypeOf(got)).toBe(Object.prototype)
    }
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  it('says where the value is, without its content', async () => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    const error = await rejection(queue.push({ list: [{ 'the key': 5n }], secret: 'hunter2' }))
    expect((error as Error).message).toContain('$.list[0]["the key"]: a BigInt')
    expect((error as Error).message).not.toContain('hunter2')
    expect(((await rejection(queue.push(circular))) as Error).message).toContain('circular')
    expect(((await rejection(queue.push(deep(5_000)))) as Error).message).toContain('deeper')
  })

  it('stores a push that toJSON makes', async () => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    let inner: Promise<number> | undefined
    const outer = queue.push({
      toJSON: () => {
        inner = queue.push('inner')
        return 'outer'
      },
    })
    expect(await Promise.all([inner, outer])).toEqual([1, 2])
    expect((await queue.reserveMany(2)).map((item) => item.value)).toEqual(['inner', 'outer'])
  })

  it('stores texts of every size around the limits of the stage', async () => {
    const queue = await openQueue<string>({ backend: 'memory' })
    const texts = [0, 1, 21_843, 21_844, 21_845, 65_533, 65_534, 65_535, 1 << 20].flatMap((length) => [
      'x'.repeat(length),
      '€'.repeat(length),
    ])
    await Promise.all(texts.map((text) => queue.push(text)))
    const got: string[] = []
    while (got.length < texts.length) for (const item of await queue.reserveMany(100)) got.push(item.value)
    expect(got).toEqual(texts)
  })
})
