/** Argument checks: plain misuse is a TypeError or RangeError, before anything happens. */

export const TIMER_MS_MAX: number = 2 ** 31 - 1

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)

export function checkId(id: unknown): number {
  if (typeof id !== 'number') throw new TypeError(`an id must be a number, not ${kindOf(id)}`)
  if (!Number.isSafeInteger(id) || id < 1) throw new RangeError('an id must be a safe integer of 1 or more')
  return id
}

export function checkIds(ids: unknown): Float64Array {
  if (!Array.isArray(ids)) throw new TypeError(`ids must be an array, not ${kindOf(ids)}`)
  const checked = new Float64Array(ids.length)
  for (let i = 0; i < checked.length; i++) checked[i] = checkId(ids[i])
  return checked
}

export function checkCount(count: unknown, name: string, max: number): number {
  if (typeof count !== 'number') throw new TypeError(`${name} must be a number, not ${kindOf(count)}`)
  if (!Number.isSafeInteger(count) || count < 1 || count > max) {
    throw new RangeError(`${name} must be an integer from 1 to ${max}`)
  }
  return count
}

export function checkObject(value: unknown, name: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`${name} must be an object, not ${kindOf(value)}`)
  }
}

export function checkBoolean(value: unknown, name: string): void {
  if (value !== undefined && typeof value !== 'boolean') {
    throw new TypeError(`${name} must be a boolean, not ${kindOf(value)}`)
  }
}

export function checkTimeout(timeoutMs: unknown): void {
  if (timeoutMs === undefined) return
  if (typeof timeoutMs !== 'number') throw new TypeError(`timeoutMs must be a number, not ${kindOf(timeoutMs)}`)
  if (Number.isNaN(timeoutMs) || timeoutMs < 0) throw new RangeError('timeoutMs must be 0 or more')
}

export function checkSignal(signal: unknown): void {
  if (signal === undefined) return
  // Not by instanceof: signals of another realm, or of a polyfill, are as good.
  if (
    typeof signal !== 'object' ||
    signal === null ||
    !('aborted' in signal && typeof signal.aborted === 'boolean') ||
    !('addEventListener' in signal && typeof signal.addEventListener === 'function') ||
    !('removeEventListener' in signal && typeof signal.removeEventListener === 'function')
  ) {
    throw new TypeError('signal must be an AbortSignal')
  }
}

export function checkOneOf<Choice extends string>(
  value: unknown,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  if (value === undefined) return undefined
  for (const choice of choices) if (value === choice) return choice
  throw new TypeError(`${name} must be one of ${choices.map((choice) => `'${choice}'`).join(', ')}`)
}
