import type { Codec } from './codec.ts'
import { json } from './codecs/json.ts'
import { EmbeddedEngine } from './engines/embedded.ts'
import type {
  Delivery,
  EnginePushOptions,
  EngineWaitOptions,
  InFlight,
  QueueEngine,
  RecoveryReport,
  Stats,
} from './engine.ts'
import { Entry } from './entry.ts'
import { MillpondError } from './errors.ts'
import { Listeners, type QueueEvents, type QueueListener } from './events.ts'
import {
  checkBoolean,
  checkCount,
  checkId,
  checkIds,
  checkObject,
  checkOneOf,
  checkSignal,
  checkTimeout,
} from './internal/check.ts'
import { unwatch, watch, type LeakOwner } from './internal/leaks.ts'
import { DURABILITY, loadNative, type NativeOptions } from './internal/native.ts'
import {
  DEFAULT_CAPACITY,
  type CloseOptions,
  type Durability,
  type PushOptions,
  type QueueOptions,
  type ReserveOptions,
  type TryPushOptions,
} from './options.ts'
import { Reserved, type Owner } from './reserved.ts'

const DURABILITIES = ['sync', 'group', 'none'] as const
const BACKENDS = ['log', 'memory', 'redb', 'sled', 'rocksdb'] as const
/** The most entries that one call may ask for. */
const MANY_MAX: number = 2 ** 24
/** How many entries `entries()` reads at a time. */
const SCAN_ENTRIES = 256
const POLL_MS = 100

const poll: ReserveOptions = { timeoutMs: POLL_MS }

/** Cares for the reservations of one queue. It must not reference their handles. */
class Reservations<Out> implements Owner<Out>, LeakOwner {
  readonly codec: Codec<never, Out>
  readonly #engine: QueueEngine
  readonly #listeners: Listeners
  readonly #path: string
  #hasWarned = false

  constructor(engine: QueueEngine, codec: Codec<never, Out>, listeners: Listeners, path: string) {
    this.codec = codec
    this.#engine = engine
    this.#listeners = listeners
    this.#path = path
  }

  reserve(delivery: Delivery): Reserved<Out> {
    const handle = new Reserved(this, delivery)
    watch(handle, this, delivery)
    return handle
  }

  ack(delivery: Delivery, handle: object): Promise<boolean> {
    if (!delivery.isSettled) unwatch(delivery)
    // The handle lives at least as long as its ack is under way, so a failure finds it and cares for it anew.
    return this.#engine.ack(delivery, () => watch(handle, this, delivery))
  }

  nack(delivery: Delivery): boolean {
    return this.#engine.nack(delivery)
  }

  forget(delivery: Delivery): void {
    unwatch(delivery)
  }

  onLeak(delivery: Delivery): void {
    if (!this.#engine.nack(delivery) || this.#hasWarned) return
    this.#hasWarned = true
    const { id } = delivery
    const message =
      `a reservation of the queue ${this.#path} (entry ${id}) was dropped without ack() or nack() and was returned ` +
      `by garbage collection; settle every item, or use \`using\``
    this.#listeners.emit('warning', { name: 'LeakedReservation', message, id })
    process.emitWarning(message, 'MillpondWarning', 'MILLPOND_LEAK')
  }
}

/**
 * A durable FIFO queue. `In` is what goes in, `Out` what comes out.
 *
 * Methods that return a promise never throw synchronously: wrong arguments reject with a `TypeError` or `RangeError`,
 * everything else with a {@link MillpondError}.
 */
export class Queue<In, Out = In> implements AsyncDisposable, AsyncIterable<Reserved<Out>> {
  readonly #engine: QueueEngine
  readonly #codec: Codec<In, Out>
  readonly #encode: Codec<In, Out>['encode']
  readonly #reservations: Reservations<Out>
  readonly #listeners: Listeners
  #hasClosed = false

  /**
   * Opens the queue in the directory `path`, making it if it is not there.
   * @throws MILLPOND_LOCKED if somebody has it open, MILLPOND_INVALID, MILLPOND_UNSUPPORTED, MILLPOND_CODEC_MISMATCH,
   * MILLPOND_NEWER_FORMAT, MILLPOND_NOT_A_DIRECTORY, MILLPOND_CORRUPT (only with `strict`), MILLPOND_IO
   */
  static async open<In = unknown, Out = In>(path: string, options?: QueueOptions<In, Out>): Promise<Queue<In, Out>> {
    if (typeof path !== 'string') throw new TypeError('path must be a string')
    if (path === '' || path.includes('\0')) throw new TypeError('path must not be empty or hold a NUL')
    if (options !== undefined) checkObject(options, 'options')
    const codec = options?.codec ?? (json() as unknown as Codec<In, Out>)
    const native = nativeOptions(options ?? {}, codec)
    const engine = await EmbeddedEngine.open(loadNative(), path, native)
    return new Queue<In, Out>(engine, codec, path)
  }

  private constructor(engine: QueueEngine, codec: Codec<In, Out>, path: string) {
    this.#engine = engine
    this.#codec = codec
    this.#encode = (value) => codec.encode(value)
    this.#listeners = new Listeners()
    this.#reservations = new Reservations<Out>(engine, codec, this.#listeners, path)
  }

  // ---- pushing

  /**
   * Stores `value` and resolves with its id when it is as durable as the queue promises. Waits while the queue is full.
   * What `value` holds is read before `push` returns.
   * @throws MILLPOND_CLOSED, MILLPOND_ENCODE, MILLPOND_TOO_LARGE, MILLPOND_TIMEOUT, MILLPOND_NO_SPACE, MILLPOND_IO,
   * MILLPOND_POISONED; the signal's reason
   */
  push(value: In, options?: PushOptions): Promise<number> {
    if (options === undefined) return this.#engine.push(this.#encode, value)
    try {
      return this.#engine.push(this.#encode, value, readPushOptions(options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Like `push`, but resolves with `null` at once when the queue is full. (Ids start at 1.)
   * @throws MILLPOND_CLOSED, MILLPOND_ENCODE, MILLPOND_TOO_LARGE, MILLPOND_NO_SPACE, MILLPOND_IO, MILLPOND_POISONED
   */
  tryPush(value: In, options?: TryPushOptions): Promise<number | null> {
    let durability: Durability | undefined
    try {
      if (options !== undefined) checkObject(options, 'options')
      durability = checkOneOf(options?.durability, 'durability', DURABILITIES)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#engine.tryPush(this.#encode, value, durability)
  }

  /**
   * Stores all of `values` or none, in one commit, with consecutive ids. Waits until all of them fit.
   * @throws RangeError for more values than the capacity; and like `push`
   */
  pushMany(values: readonly In[], options?: PushOptions): Promise<number[]> {
    try {
      if (!Array.isArray(values)) throw new TypeError('values must be an array')
      const asked = options === undefined ? undefined : readPushOptions(options)
      if (values.length > this.#engine.capacity) {
        throw new RangeError(`${values.length} values never fit into a capacity of ${this.#engine.capacity}`)
      }
      return this.#engine.pushMany(this.#encode, values, asked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Stores `value`, blocking this thread until it is durable: for exit paths.
   * @throws MILLPOND_FULL when there is no room, and like `push`
   */
  pushSync(value: In): number {
    return this.#sync().push(this.#encode, value)
  }

  /**
   * Blocks this thread until everything pushed so far is durable: for exit paths.
   * @throws MILLPOND_CLOSED, MILLPOND_NO_SPACE, MILLPOND_IO, MILLPOND_POISONED
   */
  flushSync(): void {
    this.#sync().flush()
  }

  #sync(): NonNullable<QueueEngine['sync']> {
    const { sync } = this.#engine
    if (sync === undefined) throw new MillpondError('MILLPOND_UNSUPPORTED', 'this engine cannot block the thread')
    return sync
  }

  // ---- taking

  /**
   * Waits for the oldest entry that is ready and takes it in flight. Resolves with `null` when the queue is closed or
   * `timeoutMs` is over.
   * @throws MILLPOND_CORRUPT (only with `strict`), MILLPOND_IO; the signal's reason
   */
  async reserve(options?: ReserveOptions): Promise<Reserved<Out> | null> {
    const deliveries = await this.#engine.wait(1, readReserveOptions(options))
    const delivery = deliveries[0]
    return delivery === undefined ? null : this.#reservations.reserve(delivery)
  }

  /** `reserve({ timeoutMs: 100 })`. */
  poll(): Promise<Reserved<Out> | null> {
    return this.reserve(poll)
  }

  /**
   * Takes the oldest entry that is ready, or gives `null`. Never waits, but may read a piece of a file on this thread.
   * @throws MILLPOND_CORRUPT (only with `strict`), MILLPOND_IO
   */
  tryReserve(): Reserved<Out> | null {
    const delivery = this.#engine.take(1)[0]
    return delivery === undefined ? null : this.#reservations.reserve(delivery)
  }

  /**
   * Waits for at least one entry and takes at most `max`. Resolves with `[]` when the queue is closed or `timeoutMs` is
   * over.
   * @throws MILLPOND_CORRUPT (only with `strict`), MILLPOND_IO; the signal's reason
   */
  async reserveMany(max: number, options?: ReserveOptions): Promise<Reserved<Out>[]> {
    checkCount(max, 'max', MANY_MAX)
    const deliveries = await this.#engine.wait(max, readReserveOptions(options))
    return deliveries.map((delivery) => this.#reservations.reserve(delivery))
  }

  /**
   * Takes one entry after the other, until the queue is closed. Settle each in the loop's body; leaving the loop returns
   * the current one unless it is settled.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<Reserved<Out>, undefined> {
    const end = new AbortController()
    const isEnd = (error: unknown): boolean => end.signal.aborted && error === end.signal.reason
    let current: Reserved<Out> | undefined
    const done = { done: true, value: undefined } as const
    const iterator: AsyncIterableIterator<Reserved<Out>, undefined> = {
      next: async () => {
        if (end.signal.aborted) return done
        try {
          const item = await this.reserve({ signal: end.signal })
          if (item === null) return done
          if (end.signal.aborted) {
            item.nack()
            return done
          }
          current = item
          return { done: false, value: item }
        } catch (error) {
          if (isEnd(error)) return done
          throw error
        }
      },
      return: () => {
        end.abort()
        current?.nack()
        current = undefined
        return Promise.resolve(done)
      },
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  // ---- settling by id

  /**
   * Removes the entry with this id, whether or not it is in flight. Resolves with `false` if there is none.
   * @throws MILLPOND_CLOSED, MILLPOND_NO_SPACE, MILLPOND_IO, MILLPOND_POISONED
   */
  async ack(id: number): Promise<boolean> {
    const ids = Float64Array.of(checkId(id))
    return (await this.#engine.ackIds(ids)) > 0
  }

  /**
   * Removes all entries with these ids and resolves with the number removed; unknown ids are passed over.
   * @throws MILLPOND_CLOSED, MILLPOND_NO_SPACE, MILLPOND_IO, MILLPOND_POISONED
   */
  async ackMany(ids: readonly number[]): Promise<number> {
    return this.#engine.ackIds(checkIds(ids))
  }

  /** Returns the entry with this id to its place. False if it is not in flight. */
  nack(id: number): boolean {
    return this.#engine.nackId(checkId(id))
  }

  // ---- looking

  /**
   * The entry with this id, without reserving it; `null` if there is none.
   * @throws MILLPOND_CLOSED, MILLPOND_CORRUPT, MILLPOND_IO
   */
  async get(id: number): Promise<Entry<Out> | null> {
    const [stored] = await this.#engine.scan(checkId(id), 1)
    return stored?.id === id ? new Entry<Out>(this.#codec, stored) : null
  }

  /**
   * The oldest `count` unacked entries, in flight or not, without reserving them.
   * @throws MILLPOND_CLOSED, MILLPOND_CORRUPT, MILLPOND_IO
   */
  async peek(count = 1): Promise<Entry<Out>[]> {
    checkCount(count, 'count', MANY_MAX)
    const entries: Entry<Out>[] = []
    let from = 1
    while (entries.length < count) {
      const stored = await this.#engine.scan(from, count - entries.length)
      if (stored.length === 0) break
      for (const one of stored) entries.push(new Entry<Out>(this.#codec, one))
      from = (entries.at(-1)?.id ?? 0) + 1
    }
    return entries
  }

  /**
   * All unacked entries in id order, in flight or not, without reserving them.
   * @throws MILLPOND_CLOSED, MILLPOND_CORRUPT, MILLPOND_IO
   */
  async *entries(): AsyncGenerator<Entry<Out>, void, undefined> {
    let from = 1
    for (;;) {
      const stored = await this.#engine.scan(from, SCAN_ENTRIES)
      if (stored.length === 0) return
      for (const one of stored) {
        from = one.id + 1
        yield new Entry<Out>(this.#codec, one)
      }
    }
  }

  /** Unacked entries. Keeps its last value after close. */
  get length(): number {
    return this.#engine.counts().length
  }

  /** Entries that `reserve` would give. Keeps its last value after close. */
  get readyLength(): number {
    return this.#engine.counts().readyLength
  }

  /** Entries in flight, with their age. */
  inFlight(): InFlight[] {
    return this.#engine.inFlight()
  }

  /** Counters since the queue was opened. */
  stats(): Stats {
    return this.#engine.stats()
  }

  /** What opening the queue found on disk. */
  get recovery(): RecoveryReport {
    return this.#engine.recovery
  }

  /** Whether the queue is closed or closing; not yet while it drains. */
  get closed(): boolean {
    return this.#engine.isClosed
  }

  // ---- events, closing

  on<Event extends keyof QueueEvents>(event: Event, listener: QueueListener<Event>): this {
    if (typeof listener !== 'function') throw new TypeError('listener must be a function')
    this.#listeners.add(event, listener)
    return this
  }

  off<Event extends keyof QueueEvents>(event: Event, listener: QueueListener<Event>): this {
    this.#listeners.remove(event, listener)
    return this
  }

  /**
   * Closes the queue: pushes that have an id and acks that were called still finish, pushes that wait for room reject,
   * waiting `reserve()`s resolve with `null`, and what is not acked stays stored. Resolves when the directory is free.
   * A second call resolves too.
   *
   * With `drain` only intake stops at first, and the queue closes when everything is acked. That needs a consumer, and
   * whoever holds an item must settle it before waiting for this. So do not await it in the body of a `for await` over
   * this queue, which would wait for itself: call it there, go on with the loop, which ends with the last item, and
   * await it behind the loop.
   * @throws MILLPOND_TIMEOUT at the limit of `drain`, after closing; MILLPOND_NO_SPACE, MILLPOND_IO
   */
  async close(options?: CloseOptions): Promise<void> {
    const drain = options === undefined ? false : checkDrain(options)
    await this.#engine.close(drain)
    if (this.#hasClosed) return
    this.#hasClosed = true
    this.#listeners.emit('close')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

// Each option is read once, so that a getter cannot give what was not checked, or throw where nobody expects it.

function readPushOptions(options: PushOptions): EnginePushOptions {
  checkObject(options, 'options')
  const { signal, timeoutMs, durability } = options
  checkSignal(signal)
  checkTimeout(timeoutMs)
  return { signal, timeoutMs, durability: checkOneOf(durability, 'durability', DURABILITIES) }
}

function readReserveOptions(options: ReserveOptions | undefined): EngineWaitOptions | undefined {
  if (options === undefined) return undefined
  checkObject(options, 'options')
  const { signal, timeoutMs, unref } = options
  checkSignal(signal)
  checkTimeout(timeoutMs)
  checkBoolean(unref, 'unref')
  return { signal, timeoutMs, unref }
}

function checkDrain(options: CloseOptions): boolean | { readonly timeoutMs: number } {
  checkObject(options, 'options')
  const { drain } = options
  if (drain === undefined || typeof drain === 'boolean') return drain ?? false
  checkObject(drain, 'drain')
  const { timeoutMs } = drain
  if (timeoutMs === undefined) throw new TypeError('drain must be a boolean or { timeoutMs }')
  checkTimeout(timeoutMs)
  return { timeoutMs }
}

/** A number that must be a positive integer; the wrong type is a TypeError, the wrong value MILLPOND_INVALID. */
function positiveInteger(value: unknown, name: string): number {
  if (typeof value !== 'number') throw new TypeError(`${name} must be a number`)
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new MillpondError('MILLPOND_INVALID', `${name} must be an integer of 1 or more`)
  }
  return value
}

function nativeOptions<In, Out>(options: QueueOptions<In, Out>, codec: Codec<In, Out>): NativeOptions {
  if (
    typeof codec !== 'object' ||
    codec === null ||
    typeof codec.name !== 'string' ||
    typeof codec.encode !== 'function' ||
    typeof codec.decode !== 'function'
  ) {
    throw new TypeError('codec must have a name, encode() and decode()')
  }
  checkBoolean(options.strict, 'strict')
  const capacity = positiveInteger(options.capacity ?? DEFAULT_CAPACITY, 'capacity')
  const backend = checkOneOf(options.backend, 'backend', BACKENDS) ?? 'log'
  if (backend !== 'log' && backend !== 'memory') {
    throw new MillpondError('MILLPOND_UNSUPPORTED', `the backend '${backend}' is not in this build`)
  }
  return {
    backend,
    capacity,
    durability: DURABILITY[checkOneOf(options.durability, 'durability', DURABILITIES) ?? 'group'],
    codec: codec.name,
    strict: options.strict ?? false,
    ...(options.segmentBytes === undefined
      ? {}
      : { segmentBytes: positiveInteger(options.segmentBytes, 'segmentBytes') }),
  }
}
