import type { Codec } from './codec.ts'
import type { Durability } from './options.ts'

/**
 * The seam between the facade and what keeps the entries. The addon is one engine; others follow the same rules:
 * methods that return a promise never throw synchronously, and calls take effect in the order in which they are made.
 */
export interface QueueEngine {
  readonly recovery: RecoveryReport
  readonly isClosed: boolean
  /** The most unacked entries. */
  readonly capacity: number
  /** Resolves with the id once the entry is as durable as asked. Waits while the queue is full. */
  push<In>(encode: Encode<In>, value: In, options?: EnginePushOptions): Promise<number>
  /** All or nothing, with consecutive ids. */
  pushMany<In>(encode: Encode<In>, values: readonly In[], options?: EnginePushOptions): Promise<number[]>
  /** Resolves with `null` when the queue is full. */
  tryPush<In>(encode: Encode<In>, value: In, durability?: Durability): Promise<number | null>
  /** Takes what is ready, without waiting. */
  take(max: number): Delivery[]
  /** Waits for at least one entry. Resolves with an empty list on close and when the time is over. */
  wait(max: number, options?: EngineWaitOptions): Promise<Delivery[]>
  /** False: was settled already. `onFailed` is called when the ack fails and the entry is in flight as before. */
  ack(delivery: Delivery, onFailed?: () => void): Promise<boolean>
  nack(delivery: Delivery): boolean
  /** Resolves with the number of entries removed. */
  ackIds(ids: Float64Array): Promise<number>
  nackId(id: number): boolean
  /** Entries with ids from `from` on, in id order: some of them, none only if there are none. */
  scan(from: number, max: number): Promise<StoredEntry[]>
  counts(): Counts
  inFlight(): InFlight[]
  stats(): Stats
  close(drain: boolean | { readonly timeoutMs: number }): Promise<void>
  /** Only engines that can block this thread. */
  readonly sync?: {
    push<In>(encode: Encode<In>, value: In): number
    flush(): void
  }
}

/** A codec's `encode`. */
export type Encode<In> = Codec<In, unknown>['encode']

export interface EnginePushOptions {
  readonly durability?: Durability | undefined
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
}

export interface EngineWaitOptions {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
  /** Do not hold the process while waiting. */
  readonly unref?: boolean | undefined
}

/** An entry in somebody's hands, with the state of its settling. */
export interface Delivery {
  readonly id: number
  /** How often the entry was delivered since the queue was opened; 1 at first. */
  readonly deliveries: number
  /** Not in flight any more, or about to be: an ack is under way, or the handle was given up. */
  readonly isSettled: boolean
  /** The payload, in memory of its own. */
  bytes(): Uint8Array
  /** Gives the handle up; the entry stays in flight until it is settled by its id. */
  detach(): void
}

/** An entry as it is stored. */
export interface StoredEntry {
  readonly id: number
  readonly bytes: Uint8Array
}

export interface Counts {
  /** Entries that are not acked. */
  readonly length: number
  /** Entries that `reserve` would give. */
  readonly readyLength: number
}

/** An entry in flight. */
export interface InFlight {
  readonly id: number
  readonly deliveries: number
  readonly ageMs: number
}

/** Counters of a queue since it was opened. */
export interface Stats {
  readonly length: number
  readonly ready: number
  readonly inFlight: number
  readonly waitingPushes: number
  readonly pushed: number
  readonly acked: number
  readonly nacked: number
  readonly delivered: number
  readonly redelivered: number
  readonly commits: number
  readonly committedOps: number
  readonly poisoned: boolean
  readonly store: StoreStats
}

/** Figures about the store's own resources. */
export interface StoreStats {
  /** Bytes of entries that are not acked. */
  readonly liveBytes: number
  /** Bytes of the store's files, spares included. */
  readonly diskBytes: number
  /** Files in use, spares not included. */
  readonly segments: number
  /** Calls of fsync or fdatasync by the write path. */
  readonly syncs: number
}

/** What opening the queue found on disk. */
export interface RecoveryReport {
  /** The last life ended with a clean close, or the queue is new. */
  readonly clean: boolean
  /** Bytes of a torn tail that were never acknowledged and are not delivered. */
  readonly droppedTailBytes: number
  /** What was acknowledged and is not readable; everything around it is delivered. */
  readonly damage: readonly Damage[]
}

/** One stretch of damage. */
export interface Damage {
  /** The file, relative to the queue's directory. */
  readonly file: string
  readonly offset: number
  readonly bytes: number
  /** The lowest id that may have been in it. */
  readonly firstId: number | null
  /** The highest id that may have been in it. */
  readonly lastId: number | null
  readonly reason: string
}
