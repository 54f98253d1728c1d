import { join } from 'node:path'
import { afterEach } from 'vitest'
import { bytes, Queue, type BytesInput, type QueueOptions } from '../../src-ts/index.ts'
import { tempDir } from './tempdir.ts'

const opened: { close(): Promise<void> }[] = []

/** Opens a queue in a directory of its own; it is closed when the test ends. */
export async function openQueue<In = unknown, Out = In>(
  options?: QueueOptions<In, Out>,
  path: string = join(tempDir(), 'queue'),
): Promise<Queue<In, Out>> {
  const queue = await Queue.open<In, Out>(path, options)
  opened.push(queue)
  return queue
}

export function openBytes(
  options?: Omit<QueueOptions<BytesInput, Uint8Array>, 'codec'>,
  path?: string,
): Promise<Queue<BytesInput, Uint8Array>> {
  return openQueue<BytesInput, Uint8Array>({ ...options, codec: bytes() }, path)
}

/** Everything that is ready, without waiting. It stays in flight: dropped handles would give it back when collected. */
export function drain<In, Out>(queue: Queue<In, Out>): { id: number; value: Out }[] {
  const items: { id: number; value: Out }[] = []
  for (let item = queue.tryReserve(); item !== null; item = queue.tryReserve()) {
    items.push({ id: item.id, value: item.value })
    item.detach()
  }
  return items
}

/** Forgets the queues that this test opened and has closed itself. */
export function forgetOpened(): void {
  opened.length = 0
}

/** Turns of the event loop. */
export async function turns(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** What a promise that must reject rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('the promise resolved')
}

/** What promises that must all reject reject with. */
export async function rejections(promises: readonly Promise<unknown>[]): Promise<unknown[]> {
  const outcomes = await Promise.allSettled(promises)
  return outcomes.map((outcome) => {
    if (outcome.status === 'rejected') return outcome.reason as unknown
    throw new Error('a promise resolved')
  })
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((queue) => queue.close()))
})
