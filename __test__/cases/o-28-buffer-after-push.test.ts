import { expect, it } from 'vitest'
import { drain, openBytes } from '../helpers/queues.ts'

it.each(['sync', 'group', 'none'] as const)(
  'O-28: one buffer, filled and pushed 10,000 times without awaiting, gives 10,000 different payloads (%s)',
  async (durability) => {
    const queue = await openBytes({ durability, capacity: 20_000 })
    const buffer = Buffer.alloc(1024)
    const pushes: Promise<number>[] = []
    for (let n = 0; n < 10_000; n++) {
      for (let place = 0; place < 1024; place += 4) buffer.writeUInt32LE(n, place)
      pushes.push(queue.push(buffer))
      buffer.fill(0xff)
    }
    await Promise.all(pushes)
    let n = 0
    for (const { value } of drain(queue)) {
      const got = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      expect(got.length).toBe(1024)
      expect(got.readUInt32LE(0)).toBe(n)
      expect(got.subarray(4).equals(got.subarray(0, -4))).toBe(true)
      n++
    }
    expect(n).toBe(10_000)
  },
  60_000,
)

it('O-28: changing a delivered payload changes no later delivery', async () => {
  const queue = await openBytes()
  await queue.push(Buffer.from('original'))
  const first = await queue.reserve()
  first?.bytes.fill(0)
  first?.nack()
  const second = await queue.reserve()
  expect(Buffer.from(second?.bytes ?? []).toString()).toBe('original')
})
