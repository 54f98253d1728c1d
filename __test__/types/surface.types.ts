// Checked by `npm run typecheck`; never run.
import { expectTypeOf } from 'vitest'
import {
  bytes,
  type DecodeError,
  isMillpondError,
  json,
  MillpondError,
  Queue,
  type BytesInput,
  type Codec,
  type Decoded,
  type Entry,
  type ErrorCode,
  type InFlight,
  type QueueOptions,
  type QueueWarning,
  type Reserved,
} from '../../src-ts/index.ts'

interface Job {
  readonly name: string
}

export async function queues(): Promise<void> {
  const queue = await Queue.open<Job>('jobs')
  expectTypeOf(queue).toEqualTypeOf<Queue<Job, Job>>()
  expectTypeOf(queue.push({ name: 'a' })).toEqualTypeOf<Promise<number>>()
  expectTypeOf(queue.tryPush({ name: 'a' })).toEqualTypeOf<Promise<number | null>>()
  expectTypeOf(queue.pushMany([{ name: 'a' }])).toEqualTypeOf<Promise<number[]>>()
  expectTypeOf(queue.pushSync({ name: 'a' })).toEqualTypeOf<number>()
  expectTypeOf(queue.reserve()).toEqualTypeOf<Promise<Reserved<Job> | null>>()
  expectTypeOf(queue.poll()).toEqualTypeOf<Promise<Reserved<Job> | null>>()
  expectTypeOf(queue.tryReserve()).toEqualTypeOf<Reserved<Job> | null>()
  expectTypeOf(queue.reserveMany(2)).toEqualTypeOf<Promise<Reserved<Job>[]>>()
  expectTypeOf(queue.ack(1)).toEqualTypeOf<Promise<boolean>>()
  expectTypeOf(queue.ackMany([1])).toEqualTypeOf<Promise<number>>()
  expectTypeOf(queue.nack(1)).toEqualTypeOf<boolean>()
  expectTypeOf(queue.get(1)).toEqualTypeOf<Promise<Entry<Job> | null>>()
  expectTypeOf(queue.peek()).toEqualTypeOf<Promise<Entry<Job>[]>>()
  expectTypeOf(queue.length).toEqualTypeOf<number>()
  expectTypeOf(queue.inFlight()).toEqualTypeOf<InFlight[]>()
  expectTypeOf(queue.closed).toEqualTypeOf<boolean>()
  queue.on('warning', (warning) => expectTypeOf(warning).toEqualTypeOf<QueueWarning>())
  for await (const item of queue) expectTypeOf(item).toEqualTypeOf<Reserved<Job>>()
  for await (const entry of queue.entries()) expectTypeOf(entry.value).toEqualTypeOf<Job>()
  await queue.close({ drain: { timeoutMs: 5 } })
  // @ts-expect-error the wrong value
  await queue.push({ title: 'a' })
  // @ts-expect-error no such durability
  await queue.push({ name: 'a' }, { durability: 'fast' })
  // @ts-expect-error ids are numbers
  await queue.ack(1n)
  // @ts-expect-error no such event
  queue.on('error', () => {})
  // @ts-expect-error read only
  queue.length = 3
  // @ts-expect-error opened, not constructed
  expectTypeOf(new Queue()).toBeObject()
}

export async function codecs(): Promise<void> {
  const binary = await Queue.open('bytes', { codec: bytes() })
  expectTypeOf(binary).toEqualTypeOf<Queue<BytesInput, Uint8Array>>()
  const typed = await Queue.open('jobs', { codec: json<Job>(), capacity: 10, durability: 'sync', backend: 'log' })
  expectTypeOf(typed).toEqualTypeOf<Queue<Job, Job>>()
  const untyped = await Queue.open('jobs')
  expectTypeOf(untyped).toEqualTypeOf<Queue<unknown, unknown>>()
  const dates: Codec<Date, number> = {
    name: 'date',
    encode: (value) => String(value.getTime()),
    decode: (stored) => Number(Buffer.from(stored).toString()),
  }
  const queue = await Queue.open('dates', { codec: dates })
  expectTypeOf(queue).toEqualTypeOf<Queue<Date, number>>()
  // @ts-expect-error no such backend
  const options: QueueOptions<Job> = { backend: 'sqlite' }
  // @ts-expect-error undefined is not a capacity
  const exact: QueueOptions<Job> = { capacity: undefined }
  await Promise.all([queue.close(), Queue.open('x', options), Queue.open('x', exact)])
}

export function items(item: Reserved<Job>): void {
  expectTypeOf(item.id).toEqualTypeOf<number>()
  expectTypeOf(item.value).toEqualTypeOf<Job>()
  expectTypeOf(item.bytes).toEqualTypeOf<Uint8Array>()
  expectTypeOf(item.deliveries).toEqualTypeOf<number>()
  expectTypeOf(item.settled).toEqualTypeOf<boolean>()
  expectTypeOf(item.decode()).toEqualTypeOf<Decoded<Job>>()
  expectTypeOf(item.ack()).toEqualTypeOf<Promise<boolean>>()
  expectTypeOf(item.nack()).toEqualTypeOf<boolean>()
  expectTypeOf(item.detach()).toEqualTypeOf<number>()
  const decoded = item.decode()
  if (decoded.ok) expectTypeOf(decoded.value).toEqualTypeOf<Job>()
  else expectTypeOf(decoded.error).toEqualTypeOf<DecodeError>()
  expectTypeOf<Reserved<Job>>().toExtend<Disposable & AsyncDisposable>()
  expectTypeOf<Queue<Job>>().toExtend<AsyncDisposable & AsyncIterable<Reserved<Job>>>()
  // @ts-expect-error read only
  item.id = 3
}

export function errors(error: unknown): void {
  if (isMillpondError(error)) {
    expectTypeOf(error).toEqualTypeOf<MillpondError>()
    expectTypeOf(error.code).toEqualTypeOf<ErrorCode>()
    expectTypeOf(error.outcome).toEqualTypeOf<'not-done' | 'unknown'>()
    expectTypeOf(error.id).toEqualTypeOf<number | undefined>()
  }
  if (isMillpondError(error, 'MILLPOND_FULL')) expectTypeOf(error.code).toEqualTypeOf<'MILLPOND_FULL'>()
  if (isMillpondError(error, 'MILLPOND_DECODE')) expectTypeOf(error.id).toEqualTypeOf<number>()
  if (error instanceof MillpondError) expectTypeOf(error.retryable).toEqualTypeOf<boolean>()
  // @ts-expect-error no such code
  isMillpondError(error, 'MILLPOND_NOTHING')
}
