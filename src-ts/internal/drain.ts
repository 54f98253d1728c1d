import { TIMER_MS_MAX } from './check.ts'
import { errorOf, type Failure } from './failure.ts'
import { hold, release } from './keep-alive.ts'

/** A close that waits until everything is acked, or until its limit. */
export class Drain {
  readonly promise: Promise<void>
  readonly #close: () => Promise<void>
  readonly #timer: NodeJS.Timeout | undefined
  #settle: ((value: Promise<void>) => void) | undefined

  /** `close` closes the queue for good; `onLimit` is called when the time is over. */
  constructor(timeoutMs: number | undefined, close: () => Promise<void>, onLimit: () => void) {
    hold(1)
    this.#close = close
    this.promise = new Promise<void>((resolve) => {
      this.#settle = resolve
    })
    if (timeoutMs === undefined || timeoutMs > TIMER_MS_MAX) return
    this.#timer = setTimeout(() => {
      onLimit()
      this.end({
        code: 'MILLPOND_TIMEOUT',
        outcome: 'not-done',
        message: `the queue was not empty after ${timeoutMs} ms; it is closed, and what is left stays stored`,
      })
    }, timeoutMs)
  }

  /** Closes the queue. The store is closed before a limit that was passed is reported. */
  end(failure: Failure | undefined): void {
    clearTimeout(this.#timer)
    const closed = this.#close()
    this.#settle?.(
      closed.then(() => {
        if (failure !== undefined) throw errorOf(failure)
      }),
    )
    release(1)
  }
}
