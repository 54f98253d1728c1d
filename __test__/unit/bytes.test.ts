import { createContext, runInContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { BytesInput } from '../../src-ts/index.ts'
import { drain, openBytes, rejection } from '../helpers/queues.ts'

interface ResizableConstructor {
  new (length: number, options: { maxByteLength: number }): ArrayBuffer & { resize(length: number): void }
}

function detached(make: (buffer: ArrayBuffer) => BytesInput): BytesInput {
  const buffer = new ArrayBuffer(8)
  const value = make(buffer)
  structuredClone(buffer, { transfer: [buffer] })
  return value
}

describe('bytes()', () => {
  it('takes exactly the bytes of every kind of view and buffer', async () => {
    const queue = await openBytes()
    const backing = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7)
    const shared = new SharedArrayBuffer(3)
    new Uint8Array(shared).set([7, 8, 9])
    const resizable = new (ArrayBuffer as unknown as ResizableConstructor)(4, { maxByteLength: 16 })
    new Uint8Array(resizable).set([1, 2, 3, 4])
    const tracking = new Uint8Array(resizable)
    resizable.resize(2)
    const foreign = runInContext('Uint8Array.of(5, 6)', createContext()) as Uint8Array
    const foreignBuffer = runInContext('Uint8Array.of(5, 6).buffer', createContext()) as ArrayBuffer
    const kinds: [BytesInput, number[]][] = [
      [backing, [0, 1, 2, 3, 4, 5, 6, 7]],
      [backing.subarray(2, 4), [2, 3]],
      [Buffer.from('x'), [120]],
      [new DataView(backing.buffer, 1, 3), [1, 2, 3]],
      [new Uint16Array(backing.buffer, 2, 1), [2, 3]],
      [new Float64Array(1), [0, 0, 0, 0, 0, 0, 0, 0]],
      [new BigInt64Array([-1n]), [255, 255, 255, 255, 255, 255, 255, 255]],
      [backing.buffer, [0, 1, 2, 3, 4, 5, 6, 7]],
      [shared, [7, 8, 9]],
      [new Uint8Array(shared, 1), [8, 9]],
      [resizable, [1, 2]],
      [tracking, [1, 2]],
      [foreign, [5, 6]],
      [foreignBuffer, [5, 6]],
      [new Uint8Array(0), []],
      [new ArrayBuffer(0), []],
    ]
    for (const [value] of kinds) {
      await queue.push(value)
      await queue.tryPush(value)
      queue.pushSync(value)
    }
    await queue.pushMany(kinds.map(([value]) => value))
    const got = drain(queue).map((item) => [...item.value])
    const expected = kinds.map(([, bytes]) => bytes)
    expect(got).toEqual([...expected.flatMap((bytes) => [bytes, bytes, bytes]), ...expected])
  })

  it('takes large shared memory', async () => {
    const queue = await openBytes({ backend: 'memory' })
    const shared = new Uint8Array(new SharedArrayBuffer(100_000)).fill(3)
    await queue.push(shared)
    shared.fill(4)
    expect(queue.tryReserve()?.bytes.every((byte) => byte === 3)).toBe(true)
  })

  it.each([
    ['a string', 'text'],
    ['null', null],
    ['undefined', undefined],
    ['a number', 7],
    ['an array', [1, 2]],
    ['an object', { byteLength: 1 }],
    ['something that pretends', Object.create(Uint8Array.prototype)],
    ['a detached ArrayBuffer', detached((buffer) => buffer)],
    ['a detached Uint8Array', detached((buffer) => new Uint8Array(buffer))],
    ['a detached DataView', detached((buffer) => new DataView(buffer))],
  ])('rejects %s with a TypeError', async (_, bad) => {
    const queue = await openBytes({ backend: 'memory' })
    const value = bad as BytesInput
    expect(await rejection(queue.push(value))).toBeInstanceOf(TypeError)
    expect(await rejection(queue.tryPush(value))).toBeInstanceOf(TypeError)
    expect(await rejection(queue.pushMany([new Uint8Array(1), value]))).toBeInstanceOf(TypeError)
    expect(() => queue.pushSync(value)).toThrow(TypeError)
    expect(queue.length).toBe(0)
    expect(await queue.push(new Uint8Array(1))).toBe(1)
  })

  it.each(['sync', 'group', 'none'] as const)(
    'O-28: stores what the buffer held at the call (%s)',
    async (durability) => {
      const queue = await openBytes({ durability })
      const buffer = new Uint8Array(1024)
      const words = new Uint32Array(buffer.buffer)
      const count = durability === 'sync' ? 500 : 10_000
      const pushes: Promise<number>[] = []
      for (let i = 0; i < count; i++) {
        words.fill(i)
        pushes.push(queue.push(buffer))
        words.fill(0xffff_ffff)
      }
      await Promise.all(pushes)
      let next = 0
      for (let item = queue.tryReserve(); item !== null; item = queue.tryReserve()) {
        const got = new Uint32Array(item.bytes.buffer)
        expect(got.length).toBe(256)
        expect(got.every((word) => word === next)).toBe(true)
        next++
      }
      expect(next).toBe(count)
    },
  )

  it('keeps what was transferred away after the call', async () => {
    const queue = await openBytes()
    const buffer = Uint8Array.of(1, 2, 3).buffer
    const pushed = queue.push(buffer)
    structuredClone(buffer, { transfer: [buffer] })
    await pushed
    expect([...(queue.tryReserve()?.bytes ?? [])]).toEqual([1, 2, 3])
  })

  it('O-16: stores every size around the edges', async () => {
    const queue = await openBytes({ segmentBytes: 1 << 20 })
    const mib = 1 << 20
    const sizes = [0, 1, 255, 256, 65_535, 65_536, 65_537, mib - 1, mib, mib + 1, 5 * mib]
    const payloads = sizes.map((size) => new Uint8Array(size).fill(size % 251))
    await Promise.all(payloads.map((payload) => queue.push(payload)))
    await queue.pushMany(payloads)
    for (const payload of [...payloads, ...payloads]) {
      const item = await queue.reserve()
      expect(item?.bytes.length).toBe(payload.length)
      expect(Buffer.compare(item?.bytes ?? new Uint8Array(1), payload)).toBe(0)
      expect(await item?.ack()).toBe(true)
    }
  })

  it('refuses more than the documented maximum, and the next call works', async () => {
    const queue = await openBytes({ backend: 'memory' })
    // Zeroed pages that are never touched cost nothing.
    const huge = new Uint8Array(512 * 1024 * 1024 + 1)
    expect(await rejection(queue.push(huge))).toMatchObject({ code: 'MILLPOND_TOO_LARGE', outcome: 'not-done' })
    expect(await rejection(queue.tryPush(huge))).toMatchObject({ code: 'MILLPOND_TOO_LARGE' })
    expect(await rejection(queue.pushMany([huge]))).toMatchObject({ code: 'MILLPOND_TOO_LARGE' })
    expect(() => queue.pushSync(huge)).toThrow(expect.objectContaining({ code: 'MILLPOND_TOO_LARGE' }))
    expect(queue.length).toBe(0)
    expect(await queue.push(new Uint8Array(1))).toBe(1)
  })
})
