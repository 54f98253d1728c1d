/**
 * Holds the process while something is unsettled: an open queue by itself does not. One timer serves all queues of this
 * thread; it is referenced on the step from none to one and released on the step back.
 */
const FAR_MS = 2 ** 31 - 1

let timer: NodeJS.Timeout | undefined
let held = 0

export function hold(count: number): void {
  if (held === 0 && count > 0) {
    timer ??= setInterval(() => {}, FAR_MS)
    timer.ref()
  }
  held += count
}

export function release(count: number): void {
  held -= count
  if (held === 0 && count > 0) timer?.unref()
}
