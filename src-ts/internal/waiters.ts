import type { EngineWaitOptions } from '../engine.ts'
import { listenForAbort, reasonOf } from './abort.ts'
import { TIMER_MS_MAX } from './check.ts'
import { rejectAtAwait, type Failure } from './failure.ts'
import { hold, release } from './keep-alive.ts'
import type { NativeDelivery } from './delivery.ts'

type Resolve = (value: NativeDelivery[] | Promise<never>) => void

interface Waiter {
  readonly max: number
  readonly resolve: Resolve
  readonly holds: boolean
  timer: NodeJS.Timeout | undefined
  unlisten: (() => void) | undefined
}

/** What the native side gives: as many deliveries as were demanded. */
export interface Source {
  demand(more: number): void
  /** What was delivered before comes all the same, and must be given back. */
  undemand(less: number): void
  /** Returns an item that nobody has seen; the demand that it used up is there again. */
  giveBack(id: number, generation: number): void
}

/**
 * Who waits for deliveries, first come first served. The demand registered natively is what they want together, no more:
 * nothing is reserved ahead of a call.
 */
export class Waiters {
  readonly #source: Source
  readonly #waiting: Set<Waiter> = new Set()
  #wanted = 0
  /** Demanded, and neither delivered nor withdrawn; below 0 while more is on its way than anybody wants. */
  #registered = 0

  constructor(source: Source) {
    this.#source = source
  }

  get size(): number {
    return this.#waiting.size
  }

  add(max: number, options: EngineWaitOptions | undefined): Promise<NativeDelivery[]> {
    return new Promise<NativeDelivery[]>((resolve, reject) => {
      const waiter: Waiter = {
        max,
        resolve,
        holds: options?.unref !== true,
        timer: undefined,
        unlisten: undefined,
      }
      this.#waiting.add(waiter)
      this.#wanted += max
      if (waiter.holds) hold(1)
      const timeoutMs = options?.timeoutMs
      if (timeoutMs !== undefined && timeoutMs <= TIMER_MS_MAX) {
        waiter.timer = setTimeout(() => {
          this.#leave(waiter)
          resolve([])
        }, timeoutMs)
        if (!waiter.holds) waiter.timer.unref()
      }
      const signal = options?.signal
      if (signal !== undefined) {
        try {
          waiter.unlisten = listenForAbort(signal, () => {
            this.#leave(waiter)
            reject(reasonOf(signal))
          })
        } catch (error) {
          this.#leave(waiter)
          reject(error)
        }
      }
      this.#balance()
    })
  }

  /** Hands the deliveries to those who wait; what nobody wants any more goes back. */
  deliver(deliveries: NativeDelivery[]): void {
    this.#registered -= deliveries.length
    let next = 0
    for (const waiter of this.#waiting) {
      if (next === deliveries.length) break
      const end = Math.min(next + waiter.max, deliveries.length)
      const part = next === 0 && end === deliveries.length ? deliveries : deliveries.slice(next, end)
      next = end
      this.#remove(waiter)
      waiter.resolve(part)
    }
    for (; next < deliveries.length; next++) {
      const { id, generation } = deliveries[next] as NativeDelivery
      this.#source.giveBack(id, generation)
      this.#registered++
    }
    this.#balance()
  }

  /** A read failed: the one who waits longest learns of it. */
  fail(failure: Failure): void {
    this.#registered--
    for (const waiter of this.#waiting) {
      this.#remove(waiter)
      rejectAtAwait(waiter.resolve, failure)
      break
    }
    this.#balance()
  }

  /** Nothing more will come. */
  close(): void {
    this.#registered = 0
    for (const waiter of this.#waiting) {
      this.#remove(waiter)
      waiter.resolve([])
    }
  }

  #leave(waiter: Waiter): void {
    this.#remove(waiter)
    this.#balance()
  }

  #remove(waiter: Waiter): void {
    // A signal of another make may abort more than once.
    if (!this.#waiting.delete(waiter)) return
    this.#wanted -= waiter.max
    clearTimeout(waiter.timer)
    waiter.unlisten?.()
    if (waiter.holds) release(1)
  }

  #balance(): void {
    const missing = this.#wanted - this.#registered
    if (missing === 0) return
    this.#registered = this.#wanted
    if (missing > 0) this.#source.demand(missing)
    else this.#source.undemand(-missing)
  }
}
