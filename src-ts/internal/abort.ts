/**
 * Signals may be of any make, and may be proxies: what their methods throw later must not keep others in the same sweep
 * from being settled.
 */

/** Listens for the abort. Returns what ends that; it never throws. */
export function listenForAbort(signal: AbortSignal, onAbort: () => void): () => void {
  signal.addEventListener('abort', onAbort, { once: true })
  return () => {
    try {
      signal.removeEventListener('abort', onAbort)
    } catch {
      // An abort that comes all the same finds nothing to withdraw.
    }
  }
}

/** The signal's reason, or what asking for it threw. */
export function reasonOf(signal: AbortSignal): unknown {
  try {
    return signal.reason
  } catch (error) {
    return error
  }
}
