import { EmbeddedEngine } from '../../src-ts/engines/embedded.ts'
import type { Failure } from '../../src-ts/internal/failure.ts'
import { EVENT, type NativeBinding, type NativeEventListener, type NativeQueue } from '../../src-ts/internal/native.ts'

export const failure: Failure = {
  code: 'MILLPOND_NO_SPACE',
  outcome: 'unknown',
  retryable: true,
  message: 'the device is full',
  errno: 28,
  path: '/queue/1.seg',
  operation: 'pwrite',
}

/** Packs deliveries like the addon: id, generation, deliveries, and one byte of payload each. */
export function packed(...items: readonly (readonly [id: number, generation: number])[]): ArrayBuffer {
  const head = 8 * (1 + items.length * 4)
  const buffer = new ArrayBuffer(Math.ceil((head + items.length) / 8) * 8)
  new Float64Array(buffer, 0, 1 + items.length * 4).set([
    items.length,
    ...items.flatMap(([id, generation]) => [id, generation, 1, 1]),
  ])
  return buffer
}

/** An engine over a native side that answers what a test wants. */
export async function fakeEngine(
  native: Partial<NativeQueue>,
): Promise<{ engine: EmbeddedEngine; emit: NativeEventListener; calls: string[] }> {
  const calls: string[] = []
  let listener: NativeEventListener | undefined
  const emit: NativeEventListener = (kind, a, b, c) => listener?.(kind, a, b, c)
  const queue: NativeQueue = {
    pushEach: () => 0,
    pushWhole: () => 0,
    tryPush: () => null,
    pushBlocking: () => 1,
    flushBlocking: () => null,
    withdraw: () => true,
    ack: () => 0,
    ackIds: () => 0,
    nack: () => true,
    giveBack: (id, generation) => calls.push(`giveBack ${id} ${generation}`) > 0,
    nackId: () => true,
    demand: (more) => calls.push(`demand ${more}`),
    undemand: (less) => calls.push(`undemand ${less}`),
    tryTake: () => packed(),
    scan: () => 0,
    closeIntake: () => {},
    finish: () => setImmediate(() => emit(EVENT.finished, undefined, undefined, undefined)),
    length: () => 0,
    readyLength: () => 0,
    inFlight: () => [],
    stats: () => {
      throw new Error('not in the fake')
    },
    recovery: () => ({ clean: true, droppedTailBytes: 0, damage: [] }),
    ...native,
  }
  const binding: NativeBinding = {
    open: (_path, _options, given) => {
      listener = given
      setImmediate(() => emit(EVENT.opened, queue, undefined, undefined))
    },
    version: () => '0.0.0',
    errorCodes: () => [],
  }
  const engine = await EmbeddedEngine.open(binding, 'fake', {
    backend: 'memory',
    capacity: 100,
    durability: 2,
    codec: 'fake',
    strict: false,
  })
  return { engine, emit, calls }
}
