import { describe, expect, it } from 'vitest'
import { EmbeddedEngine } from '../../src-ts/engines/embedded.ts'
import { EVENT } from '../../src-ts/internal/native.ts'
import { TokenRing, type Settler } from '../../src-ts/internal/token-ring.ts'
import { failure, fakeEngine, packed } from '../helpers/fake-native.ts'
import { rejection, rejections, turns } from '../helpers/queues.ts'

const encode = (value: Uint8Array | string): Uint8Array | string => value
const noSpace = {
  code: 'MILLPOND_NO_SPACE',
  outcome: 'unknown',
  retryable: true,
  errno: 28,
  path: '/queue/1.seg',
  operation: 'pwrite',
  cause: failure,
}

describe('the engine', () => {
  it('makes errors of what the addon settles as failed', async () => {
    const { engine, emit } = await fakeEngine({ pushEach: () => 10 })
    const pushes = [engine.push(encode, 'a'), engine.push(encode, 'b'), engine.push(encode, 'c')]
    await turns(1)
    emit(EVENT.settledMany, Float64Array.of(10, 1, 5, 11, 2, -1), [failure], undefined)
    expect(await pushes[0]).toBe(5)
    for (const error of await rejections(pushes.slice(1))) expect(error).toMatchObject(noSpace)
  })

  it('makes errors of what the addon refuses at once, and of what it throws', async () => {
    let answer: () => never | typeof failure = () => failure
    const { engine } = await fakeEngine({
      pushEach: () => answer(),
      pushWhole: () => answer(),
      tryPush: () => answer(),
      ackIds: () => answer(),
      pushBlocking: () => answer(),
      flushBlocking: () => answer(),
      tryTake: () => answer(),
    })
    const calls = (): Promise<unknown>[] => [
      engine.push(encode, 'a'),
      engine.push(encode, new Uint8Array(100_000)),
      engine.push(encode, 'a', { timeoutMs: 1_000 }),
      engine.pushMany(encode, ['a']),
      engine.pushMany(encode, ['a'], { timeoutMs: 1_000 }),
      engine.tryPush(encode, 'a'),
      engine.ackIds(Float64Array.of(1)),
    ]
    for (const error of await rejections(calls())) expect(error).toMatchObject(noSpace)
    expect(() => engine.sync.push(encode, 'a')).toThrow(expect.objectContaining(noSpace))
    expect(() => engine.sync.flush()).toThrow(expect.objectContaining(noSpace))
    expect(() => engine.take(1)).toThrow(expect.objectContaining(noSpace))
    answer = () => {
      throw new Error('panicked at core.rs')
    }
    const internal = { code: 'MILLPOND_INTERNAL', outcome: 'unknown', message: 'the addon failed: panicked at core.rs' }
    for (const error of await rejections(calls())) expect(error).toMatchObject(internal)
    expect(() => engine.sync.push(encode, 'a')).toThrow(expect.objectContaining(internal))
    expect(() => engine.take(1)).toThrow(expect.objectContaining(internal))
  })

  it('fails to open with what the addon throws', async () => {
    const binding = {
      open: () => {
        throw new Error('no thread')
      },
      version: () => '',
      errorCodes: () => [],
    }
    const options = { backend: 'memory', capacity: 1, durability: 2, codec: 'x', strict: false } as const
    expect(await rejection(EmbeddedEngine.open(binding, 'x', options))).toMatchObject({ code: 'MILLPOND_INTERNAL' })
  })

  it('leaves an item in flight whose ack failed', async () => {
    let answer: number | { token: number; refused: number[]; settled: boolean; failure?: typeof failure } = 7
    const { engine, emit } = await fakeEngine({ ack: () => answer, tryTake: () => packed([1, 1], [2, 2], [3, 3]) })
    const [a, b, c] = engine.take(3)
    if (a === undefined || b === undefined || c === undefined) throw new Error('nothing delivered')
    const acks = [engine.ack(a), engine.ack(b)]
    expect(a.isSettled).toBe(true)
    await turns(1)
    emit(EVENT.settledMany, Float64Array.of(7, 2, -1), [failure], undefined)
    for (const error of await rejections(acks)) expect(error).toMatchObject(noSpace)
    expect([a.isSettled, b.isSettled]).toEqual([false, false])
    answer = { token: 0, refused: [], settled: true, failure }
    expect(await rejection(engine.ack(a))).toMatchObject(noSpace)
    expect(a.isSettled).toBe(false)
    answer = { token: 20, refused: [1], settled: false }
    const again = [engine.ack(a), engine.ack(b), engine.ack(c)]
    await turns(1)
    emit(EVENT.settledOne, 20, 2, 1)
    expect(await Promise.all(again)).toEqual([true, false, true])
    expect([a.isSettled, b.isSettled, c.isSettled]).toEqual([true, true, true])
  })

  it('demands what is wanted, and gives back what is not', async () => {
    const { engine, emit, calls } = await fakeEngine({})
    const controller = new AbortController()
    const first = rejection(engine.wait(2, { signal: controller.signal }))
    const second = engine.wait(1)
    expect(calls.splice(0)).toEqual(['demand 2', 'demand 1'])
    // On its way already when the first one leaves.
    controller.abort('enough')
    expect(calls.splice(0)).toEqual(['undemand 2'])
    emit(EVENT.delivered, packed([1, 1], [2, 2], [3, 3]), undefined, undefined)
    expect(await first).toBe('enough')
    expect((await second).map((delivery) => delivery.id)).toEqual([1])
    // The demand of what was given back is there again natively; the sum is 0.
    expect(calls.splice(0)).toEqual(['giveBack 2 2', 'giveBack 3 3'])
    const third = engine.wait(5)
    const fourth = rejection(engine.wait(1))
    expect(calls.splice(0)).toEqual(['demand 5', 'demand 1'])
    emit(EVENT.delivered, packed([4, 4]), undefined, undefined)
    expect(await third).toHaveLength(1)
    expect(calls.splice(0)).toEqual(['undemand 4'])
    emit(EVENT.deliverFailed, failure, undefined, undefined)
    expect(await fourth).toMatchObject(noSpace)
    expect(calls).toEqual([])
  })

  it('answers scans that fail', async () => {
    const { engine, emit } = await fakeEngine({ scan: () => 3 })
    const scan = rejection(engine.scan(1, 1))
    emit(EVENT.scanFailed, 3, { ...failure, id: 9 }, undefined)
    expect(await scan).toMatchObject({ ...noSpace, id: 9, cause: { id: 9 } })
  })

  it('leaves nobody waiting when it ends, and reports how', async () => {
    let emitFinished: (() => void) | undefined
    const { engine, emit } = await fakeEngine({ pushEach: () => 1, scan: () => 9, finish: () => emitFinished?.() })
    emitFinished = () => emit(EVENT.finished, failure, undefined, undefined)
    const push = rejection(engine.push(encode, 'a'))
    const scan = rejection(engine.scan(1, 1))
    await turns(1)
    const close = rejection(engine.close(false))
    expect(await push).toMatchObject({ code: 'MILLPOND_CLOSED', outcome: 'unknown' })
    expect(await scan).toMatchObject({ code: 'MILLPOND_CLOSED' })
    expect(await close).toMatchObject(noSpace)
  })

  it('knows every failure as an internal one whose code it does not know', async () => {
    const { engine } = await fakeEngine({
      tryPush: () => ({ code: 'MILLPOND_NEW', outcome: 'not-done', message: 'x' }),
    })
    expect(await rejection(engine.tryPush(encode, 'a'))).toMatchObject({ code: 'MILLPOND_INTERNAL' })
  })
})

describe('the token ring', () => {
  it('finds tokens in any order, far apart and beyond 2^31', () => {
    const ring = new TokenRing()
    const settlers = new Map<number, Settler>()
    for (const base of [0, 5_000, 2 ** 31 - 600, 2 ** 40, 2 ** 53 - 1_500]) {
      for (let i = 0; i < 700; i++) settlers.set(base + i, () => {})
    }
    for (const [token, settler] of settlers) ring.put(token, settler)
    expect(ring.size).toBe(3_500)
    expect(ring.take(4_999)).toBeUndefined()
    for (const [token, settler] of [...settlers].toReversed()) expect(ring.take(token)).toBe(settler)
    expect(ring.take(0)).toBeUndefined()
    expect(ring.size).toBe(0)
  })

  it('drains the oldest first', () => {
    const ring = new TokenRing()
    const settlers = [5, 1_029, 7, 2].map((token): [number, Settler] => [token, () => token])
    for (const [token, settler] of settlers) ring.put(token, settler)
    expect(ring.drain()).toEqual(settlers.toSorted((a, b) => a[0] - b[0]).map(([, settler]) => settler))
    expect(ring.drain()).toEqual([])
  })
})
