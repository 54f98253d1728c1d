import type { StoredEntry } from '../engine.ts'
import { isFailure, rejectAtAwait, type Failure } from './failure.ts'
import { hold, release } from './keep-alive.ts'

type Resolve = (entries: StoredEntry[] | Promise<never>) => void

/** Reads under way, by token. Each holds the process. */
export class Scans {
  readonly #waiting: Map<number, Resolve> = new Map()

  add(token: number, resolve: Resolve): void {
    this.#waiting.set(token, resolve)
    hold(1)
  }

  settle(token: number, result: StoredEntry[] | Failure): void {
    const resolve = this.#waiting.get(token)
    if (resolve === undefined) return
    this.#waiting.delete(token)
    release(1)
    if (isFailure(result)) rejectAtAwait(resolve, result)
    else resolve(result)
  }

  /** Refuses all of them. */
  fail(failure: Failure): void {
    for (const token of this.#waiting.keys()) this.settle(token, failure)
  }
}
