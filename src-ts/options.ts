import type { Codec } from './codec.ts'

/** What a push waits for: its own fsync, a shared fsync, or only that the operating system has the bytes. */
export type Durability = 'sync' | 'group' | 'none'

export type Backend = 'log' | 'memory' | 'redb' | 'sled' | 'rocksdb'

/** How many unacked entries a queue holds if nothing else is said. */
export const DEFAULT_CAPACITY = 100_000

/** Options of `Queue.open`. */
export interface QueueOptions<In, Out = In> {
  /** @default json() */
  readonly codec?: Codec<In, Out>
  /**
   * `'group'`: pushes that come together share one fsync; `'sync'`: each has its own; `'none'`: handed to the operating
   * system, which survives a crash of the process but not of the machine. @default 'group'
   */
  readonly durability?: Durability
  /** The most unacked entries; `push` waits above it. @default 100_000 */
  readonly capacity?: number
  /** `'log'` is durable, `'memory'` is not. The others need another build. @default 'log' */
  readonly backend?: Backend
  /** The largest segment file of the log. */
  readonly segmentBytes?: number
  /** Refuse damaged entries with `MILLPOND_CORRUPT`, instead of delivering everything else and reporting. @default false */
  readonly strict?: boolean
}

/** Options of `push` and `pushMany`. */
export interface PushOptions {
  /** Withdraws the push while it waits for room; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** How long to wait for room; then the promise rejects with `MILLPOND_TIMEOUT`. */
  readonly timeoutMs?: number | undefined
  /** @default the queue's */
  readonly durability?: Durability | undefined
}

/** Options of `tryPush`. */
export interface TryPushOptions {
  /** @default the queue's */
  readonly durability?: Durability | undefined
}

/** Options of `reserve` and `reserveMany`. */
export interface ReserveOptions {
  /** Ends the waiting; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** How long to wait; then `reserve` resolves with `null` and `reserveMany` with `[]`. */
  readonly timeoutMs?: number | undefined
  /** Do not hold the process while waiting. @default false */
  readonly unref?: boolean | undefined
}

/** Options of `close`. */
export interface CloseOptions {
  /** Stop intake, and wait until everything is acked, at most so long. @default false */
  readonly drain?: boolean | { readonly timeoutMs: number } | undefined
}
