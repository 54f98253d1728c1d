import { describe, expect, it } from 'vitest'
import { fakeEngine, packed } from '../helpers/fake-native.ts'
import { openQueue, rejection, turns } from '../helpers/queues.ts'
import { EVENT } from '../../src-ts/internal/native.ts'

interface Parts {
  readonly add?: (type: string, listener: () => void) => void
  readonly remove?: unknown
}

/** A signal of another make, as a polyfill or a proxy may be. */
function strange({ add = () => {}, remove = () => {} }: Parts): AbortSignal {
  return { aborted: false, reason: 'strange', addEventListener: add, removeEventListener: remove } as never
}

const fail = (message: string) => (): never => {
  throw new Error(message)
}

describe('a signal of another make', () => {
  it('is refused when nobody could stop listening to it', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    const signal = strange({ remove: 'nothing' })
    expect(await rejection(queue.push(1, { signal }))).toBeInstanceOf(TypeError)
    expect(await rejection(queue.reserve({ signal }))).toBeInstanceOf(TypeError)
    expect(queue.length).toBe(0)
  })

  it('that fails when it is left keeps no promise from being settled, its own or those beside it', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    const signal = strange({ remove: fail('left') })
    expect(await Promise.all([queue.push(1, { signal }), queue.push(2), queue.push(3)])).toEqual([1, 2, 3])
    const items = await Promise.all([queue.reserve({ signal }), queue.reserve()])
    expect(items.map((item) => item?.id)).toEqual([1, 2])
    expect(await queue.reserveMany(5, { signal, timeoutMs: 50 })).toHaveLength(1)
    expect(await queue.reserve({ signal, timeoutMs: 1 })).toBeNull()
  })

  it('that fails when it is listened to leaves no demand and no timer behind', async () => {
    const { engine, emit, calls } = await fakeEngine({})
    const signal = strange({ add: fail('listened') })
    expect(await rejection(engine.wait(3, { signal, timeoutMs: 1 }))).toMatchObject({ message: 'listened' })
    const next = engine.wait(1)
    await new Promise((resolve) => setTimeout(resolve, 20))
    emit(EVENT.delivered, packed([1, 1]), undefined, undefined)
    expect(await next).toHaveLength(1)
    expect(calls).toEqual(['demand 1'])
  })

  it('that aborts while it is listened to, and again later, withdraws once', async () => {
    const aborts: (() => void)[] = []
    const signal = strange({
      add: (_, listener) => {
        aborts.push(listener)
        listener()
      },
    })
    const { engine, emit, calls } = await fakeEngine({})
    expect(await rejection(engine.wait(3, { signal }))).toBe('strange')
    for (const abort of aborts) abort()
    const next = engine.wait(1)
    emit(EVENT.delivered, packed([1, 1]), undefined, undefined)
    expect(await next).toHaveLength(1)
    expect(calls).toEqual(['demand 1'])

    const queue = await openQueue<number>({ backend: 'memory' })
    expect(await rejection(queue.push(1, { signal }))).toBe('strange')
    expect(await queue.push(2)).toBe(1)
    for (const abort of aborts) abort()
    await turns(2)
    expect(queue.length).toBe(1)
  })

  it('whose reason cannot be read rejects with what that threw', async () => {
    let abort = (): void => {}
    const signal = strange({
      add: (_, listener) => {
        abort = listener
      },
    })
    Object.defineProperty(signal, 'reason', { get: fail('no reason') })
    const queue = await openQueue<number>({ backend: 'memory' })
    const waiting = rejection(queue.reserve({ signal }))
    abort()
    expect(await waiting).toMatchObject({ message: 'no reason' })
  })
})

describe('options that are getters', () => {
  const once = (name: string, value: unknown): object => {
    let reads = 0
    return Object.defineProperty({}, name, {
      enumerable: true,
      get: () => {
        if (++reads > 1) throw new Error('read twice')
        return value
      },
    })
  }

  it('are read once, and what they throw is a rejection', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    const { signal } = new AbortController()
    for (const [name, value] of [
      ['timeoutMs', 5_000],
      ['signal', signal],
      ['durability', 'group'],
    ] as const) {
      expect(await queue.push(1, once(name, value))).toBeGreaterThan(0)
      expect(await queue.pushMany([1], once(name, value))).toHaveLength(1)
    }
    expect(await queue.reserve(once('timeoutMs', 5_000))).not.toBeNull()
    expect(await queue.reserveMany(2, once('signal', signal))).toHaveLength(2)

    const broken = Object.defineProperty({}, 'timeoutMs', { get: fail('broken') })
    const aborted = strange({})
    let looks = 0
    Object.defineProperty(aborted, 'aborted', {
      get: () => {
        if (++looks > 1) throw new Error('broken')
        return false
      },
    })
    for (const options of [broken, { signal: aborted }]) {
      looks = 0
      expect(await rejection(queue.push(1, options))).toMatchObject({ message: 'broken' })
      looks = 0
      expect(await rejection(queue.pushMany([1], options))).toMatchObject({ message: 'broken' })
      looks = 0
      expect(await rejection(queue.reserve(options))).toMatchObject({ message: 'broken' })
    }
  })

  it('also where a list says how long it is', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    let reads = 0
    const values = new Proxy([1, 2], {
      get: (target, key) => (key === 'length' && ++reads > 1 ? 2 ** 40 : (Reflect.get(target, key) as unknown)),
    })
    expect(await rejection(queue.pushMany(values))).toBeInstanceOf(RangeError)
    expect(queue.length).toBe(0)
  })
})
