import { describe, expect, it } from 'vitest'
import type { Codec } from '../../src-ts/index.ts'
import { unshared } from '../../src-ts/internal/payload.ts'
import { drain, openQueue, rejection } from '../helpers/queues.ts'

/** Stores what it is given. */
const raw: Codec<Uint8Array, Uint8Array> = { name: 'raw', encode: (value) => value, decode: (stored) => stored }

const saying = (byteLength: number): Uint8Array =>
  Object.defineProperty(Uint8Array.of(7, 8, 9), 'byteLength', { value: byteLength })

describe('what a codec returns', () => {
  it('is stored whole, whatever it says of its length, and harms nothing that is pushed beside it', async () => {
    const queue = await openQueue({ backend: 'memory', codec: raw })
    for (const length of [1, 60_000, 2 ** 32, -1, Number.NaN]) {
      const before = queue.push(Uint8Array.of(1))
      const ids = await Promise.all([before, queue.push(saying(length)), queue.push(Uint8Array.of(2))])
      const more = [await queue.tryPush(saying(length)), queue.pushSync(saying(length))]
      const many = await queue.pushMany([Uint8Array.of(1), saying(length), Uint8Array.of(2)])
      expect([...ids, ...more, ...many]).toHaveLength(8)
      const stored = drain(queue).map((item) => [...item.value])
      expect(stored).toEqual([[1], [7, 8, 9], [2], [7, 8, 9], [7, 8, 9], [1], [7, 8, 9], [2]])
    }
  })

  it('is refused when its memory was given away', async () => {
    const queue = await openQueue({ backend: 'memory', codec: raw })
    const detached = new Uint8Array(8)
    structuredClone(detached, { transfer: [detached.buffer] })
    expect(await rejection(queue.push(detached))).toBeInstanceOf(TypeError)
    expect(await rejection(queue.tryPush(detached))).toBeInstanceOf(TypeError)
    expect(await rejection(queue.pushMany([Uint8Array.of(1), detached]))).toBeInstanceOf(TypeError)
    expect(() => queue.pushSync(detached)).toThrow(TypeError)
    expect(queue.length).toBe(0)
  })

  it('is copied out of shared memory, also when it is a Buffer, whose slice() would be a view', () => {
    const memory = new SharedArrayBuffer(8)
    for (const bytes of [Buffer.from(memory), new Uint8Array(memory)]) {
      const copy = unshared(bytes)
      expect(copy.buffer).not.toBe(memory)
      expect(copy).toHaveLength(8)
    }
    const own = Buffer.alloc(4)
    expect(unshared(own)).toBe(own)
  })
})
