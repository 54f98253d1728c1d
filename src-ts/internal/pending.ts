import { rejectAtAwait, type Failure } from './failure.ts'
import type { Pending, Settler, TokenRing } from './token-ring.ts'
import { atMostOneTurn } from './turn.ts'

/** One promise that waits for one token. */
export class PendingValue<Value> implements Pending {
  readonly span: number
  readonly #resolve: (value: Value | Promise<never>) => void
  readonly #map: (value: number) => Value

  constructor(span: number, resolve: (value: Value | Promise<never>) => void, map: (value: number) => Value) {
    this.span = span
    this.#resolve = resolve
    this.#map = map
  }

  settle(value: number): void {
    this.#resolve(this.#map(value))
  }

  fail(reject: (resolve: (value: Promise<never>) => void) => void): void {
    reject(this.#resolve)
  }
}

export function failWaiting(waiting: Settler | Pending, failure: Failure): void {
  if (typeof waiting === 'function') rejectAtAwait(waiting, failure)
  else waiting.fail((resolve) => rejectAtAwait(resolve, failure))
}

/**
 * Settles the operations under `count` tokens from `token` on: with `value` and those that follow it, or with
 * `failure`. Returns how many tokens were waited for.
 */
export function settleRun(
  ring: TokenRing,
  token: number,
  count: number,
  value: number,
  failure: Failure | undefined,
): number {
  let released = 0
  for (let i = 0; i < count;) {
    const waiting = ring.take(token + i)
    if (waiting === undefined) {
      i++
      continue
    }
    const span = typeof waiting === 'function' ? 1 : waiting.span
    if (failure !== undefined) failWaiting(waiting, failure)
    else if (typeof waiting === 'function') waiting(value + i)
    else waiting.settle(value + i)
    released += span
    i += span
  }
  return released
}

/** Refuses everything that still waits. Returns how many tokens that were. */
export function failAll(ring: TokenRing, failure: Failure): number {
  let released = 0
  for (const waiting of ring.drain()) {
    released += typeof waiting === 'function' ? 1 : waiting.span
    failWaiting(waiting, failure)
  }
  return released
}

/** Resolves pushes that the addon settled in the call itself. */
export function settleNow(settlers: Settler[], firstId: number): void {
  atMostOneTurn(() => {
    for (let i = 0; i < settlers.length; i++) (settlers[i] as Settler)(firstId + i)
  })
}
