import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bytes, Queue } from '../../src-ts/index.ts'
import { drain, openBytes } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

const MIB = 1024 * 1024
const digest = (data: Uint8Array): string => `${data.length}:${createHash('sha256').update(data).digest('hex')}`

/** Pushes payloads of these sizes, and expects them before and after the queue was opened again. */
async function roundTrip(sizes: readonly number[], segmentBytes: number): Promise<void> {
  const path = join(tempDir(), 'queue')
  const payloads = sizes.map((size) => randomBytes(size))
  const wanted = payloads.map(digest)
  const first = await Queue.open(path, { codec: bytes(), segmentBytes })
  const ids: number[] = []
  for (const payload of payloads) ids.push(await first.push(payload))
  expect(drain(first).map((item) => digest(item.value))).toEqual(wanted)
  await first.close()

  const second = await openBytes({ segmentBytes }, path)
  const items = drain(second)
  expect(items.map((item) => digest(item.value))).toEqual(wanted)
  expect(items.map((item) => item.id)).toEqual(ids)
  expect(second.recovery).toEqual({ clean: true, droppedTailBytes: 0, damage: [] })
  expect(await second.ackMany(ids)).toBe(sizes.length)
  expect(second.length).toBe(0)
}

it('O-16: stores the empty payload and sizes at powers of two', async () => {
  await roundTrip([0, 1, 255, 256, 65_535, 65_536, 0], MIB)
})

it('O-16: stores payloads as large as a segment, and five times as large', async () => {
  await roundTrip([MIB - 1, MIB, MIB + 1, 5 * MIB, 1], MIB)
})

it('O-16: stores payloads that end on, before and after the end of a segment', async () => {
  // The first segment of a queue has 64 KiB. Whatever its records take, one of these sizes ends exactly at its end.
  const filler = 40_000
  for (let room = 8_000; room < 24_000; room += 2_001) await roundTrip([filler, room, 100], 64 * 1024)
  const sizes = Array.from({ length: 400 }, (_, step) => 300 + step)
  await roundTrip(sizes, 64 * 1024)
})

it('O-16: refuses more than the maximum before an id or a slot is used', async () => {
  const queue = await openBytes({ capacity: 1 })
  const tooLarge = new Uint8Array(512 * MIB + 1)
  await expect(queue.push(tooLarge)).rejects.toMatchObject({ code: 'MILLPOND_TOO_LARGE', outcome: 'not-done' })
  await expect(queue.tryPush(tooLarge)).rejects.toMatchObject({ code: 'MILLPOND_TOO_LARGE' })
  await expect(queue.pushMany([tooLarge])).rejects.toMatchObject({ code: 'MILLPOND_TOO_LARGE' })
  expect(() => queue.pushSync(tooLarge)).toThrow(expect.objectContaining({ code: 'MILLPOND_TOO_LARGE' }))
  expect(queue.length).toBe(0)
  expect(await queue.push(new Uint8Array([1]))).toBe(1)
})
