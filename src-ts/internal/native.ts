import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { InFlight, RecoveryReport, Stats } from '../engine.ts'
import { MillpondError } from '../errors.ts'
import type { Failure } from './failure.ts'

/** Kinds of events that the addon reports; crates/millpond-node/src/event.rs. */
export const EVENT = {
  /** (queue | failure) */
  opened: 0,
  /** (token, count, value) */
  settledOne: 1,
  /** (triples of token, count, value; failures): a negative value -n names failure n-1 */
  settledMany: 2,
  /** (packed deliveries) */
  delivered: 3,
  /** (failure) */
  deliverFailed: 4,
  /** (token, packed entries) */
  scanned: 5,
  /** (token, failure) */
  scanFailed: 6,
  /** (failure | undefined) */
  finished: 7,
} as const

export type NativeEventListener = (kind: number, a: unknown, b: unknown, c: unknown) => void

/** How durabilities are counted at the boundary; 0 is the queue's own. */
export const DURABILITY = { inherit: 0, sync: 1, group: 2, none: 3 } as const

export interface NativeOptions {
  readonly backend: 'log' | 'memory'
  readonly capacity: number
  readonly durability: number
  readonly codec: string
  readonly segmentBytes?: number
  readonly strict: boolean
}

/** The answer to `ack` when not everything was accepted and is on its way. */
export interface NativeAckAnswer {
  readonly token: number
  /** Places in the input that were refused: already settled. */
  readonly refused: readonly number[]
  readonly settled: boolean
  readonly failure?: Failure | null
}

/**
 * The addon's queue. Where a number answers an operation: 0 or more is the token of what is under way, negative that it
 * is settled now: -id for pushes, -1 - value otherwise.
 */
export interface NativeQueue {
  pushEach(bytes: Uint8Array, used: number, lengths: Uint32Array, count: number, durability: number): number | Failure
  pushWhole(bytes: Uint8Array, used: number, lengths: Uint32Array, count: number, durability: number): number | Failure
  tryPush(bytes: Uint8Array, durability: number): number | Failure | null
  pushBlocking(bytes: Uint8Array): number | Failure
  flushBlocking(): Failure | null
  withdraw(token: number): boolean
  /** Pairs of id and generation. */
  ack(handles: Float64Array, count: number): number | NativeAckAnswer
  ackIds(ids: Float64Array): number | Failure
  nack(id: number, generation: number): boolean
  giveBack(id: number, generation: number): boolean
  nackId(id: number): boolean
  demand(more: number): void
  undemand(less: number): void
  tryTake(max: number): ArrayBuffer | Failure
  scan(from: number, max: number): number
  closeIntake(): void
  finish(): void
  length(): number
  readyLength(): number
  inFlight(): InFlight[]
  stats(): Stats
  recovery(): RecoveryReport
}

export interface NativeBinding {
  open(path: string, options: NativeOptions, listener: NativeEventListener): void
  version(): string
  errorCodes(): { code: string; retryable: boolean; when: string; remedy: string }[]
}

const FILE_NAME: string = `millpond.${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}.node`

let loaded: NativeBinding | undefined

/** Loads the addon of this platform. Throws `MILLPOND_UNSUPPORTED` that says what was looked for. */
export function loadNative(): NativeBinding {
  if (loaded !== undefined) return loaded
  // The file lies in the package's root, beside dist/ or src-ts/.
  const file = process.env['MILLPOND_ADDON'] ?? fileURLToPath(new URL(`../../${FILE_NAME}`, import.meta.url))
  if (!existsSync(file)) {
    throw new MillpondError(
      'MILLPOND_UNSUPPORTED',
      `no addon for ${process.platform}-${process.arch}: looked for ${file}; \`npm run build\` makes it`,
      { path: file },
    )
  }
  try {
    loaded = createRequire(import.meta.url)(file) as NativeBinding
    return loaded
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new MillpondError(
      'MILLPOND_UNSUPPORTED',
      `the addon ${file} is there but does not load: ${reason}; \`npm run build\` makes it anew`,
      { path: file, cause: error },
    )
  }
}
