import type { EnginePushOptions } from '../engine.ts'
import { listenForAbort, reasonOf } from './abort.ts'
import { TIMER_MS_MAX } from './check.ts'
import { rejectAtAwait } from './failure.ts'

/** A push that a signal or a timer takes back as long as it waits for room. */
export function withdrawable<Value>(
  options: EnginePushOptions,
  withdraw: () => boolean,
  put: (settler: (value: Value | Promise<never>) => void) => Promise<unknown> | void,
): Promise<Value> {
  const { signal, timeoutMs } = options
  // The codec may have aborted it.
  if (signal?.aborted === true) return Promise.reject(signal.reason)
  let timer: NodeJS.Timeout | undefined
  let unlisten: (() => void) | undefined
  const cleanUp = (): void => {
    clearTimeout(timer)
    unlisten?.()
  }
  return new Promise<Value>((resolve, reject) => {
    if (signal !== undefined) {
      unlisten = listenForAbort(signal, () => {
        if (!withdraw()) return
        cleanUp()
        reject(reasonOf(signal))
      })
    }
    if (timeoutMs !== undefined && timeoutMs <= TIMER_MS_MAX) {
      timer = setTimeout(() => {
        if (!withdraw()) return
        cleanUp()
        rejectAtAwait(resolve, {
          code: 'MILLPOND_TIMEOUT',
          outcome: 'not-done',
          message: `no room within ${timeoutMs} ms`,
        })
      }, timeoutMs)
    }
    const refused = put((value) => {
      cleanUp()
      resolve(value)
    })
    // What is refused at once rejects; everything else goes through the settler.
    refused?.catch((error: unknown) => {
      cleanUp()
      reject(error)
    })
  })
}
