import { errorTable, type ErrorCode } from './errors.generated.ts'

export { errorTable, type ErrorCode }

/**
 * Whether the operation that failed may have happened all the same: `'not-done'` means that nothing was stored, removed
 * or delivered, `'unknown'` that writing had begun, so that a repeated push may be delivered twice.
 */
export type ErrorOutcome = 'not-done' | 'unknown'

/** What a {@link MillpondError} carries beside its code and message. */
export interface MillpondErrorDetails {
  readonly outcome?: ErrorOutcome | undefined
  /** The id of the entry concerned. */
  readonly id?: number | undefined
  /** The file or directory concerned. */
  readonly path?: string | undefined
  /** The operating system's error number. */
  readonly errno?: number | undefined
  /** The operation that the operating system refused. */
  readonly operation?: string | undefined
  /** What lies below: the native failure, or what a codec threw. */
  readonly cause?: unknown
}

const brand: unique symbol = Symbol.for('millpond.MillpondError') as never

const isBranded = (value: unknown): value is MillpondError =>
  typeof value === 'object' && value !== null && (value as { [brand]?: unknown })[brand] === true

/**
 * The one error class of Millpond. Tell errors apart by `code`; the message is for people and may change.
 * `instanceof` also recognises errors of another copy of this package.
 */
export class MillpondError extends Error {
  readonly code: ErrorCode
  /** Whether the same call may succeed later without a change by the caller. */
  readonly retryable: boolean
  readonly outcome: ErrorOutcome
  declare readonly id?: number
  declare readonly path?: string
  declare readonly errno?: number
  declare readonly operation?: string

  constructor(code: ErrorCode, message: string, details?: MillpondErrorDetails) {
    super(message, details?.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.retryable = errorTable[code].retryable
    this.outcome = details?.outcome ?? 'not-done'
    if (details?.id !== undefined) this.id = details.id
    if (details?.path !== undefined) this.path = details.path
    if (details?.errno !== undefined) this.errno = details.errno
    if (details?.operation !== undefined) this.operation = details.operation
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A subclass of a user inherits this method and means itself.
    return this === MillpondError ? isBranded(value) : Function.prototype[Symbol.hasInstance].call(this, value)
  }
}
Object.defineProperties(MillpondError.prototype, {
  name: { value: 'MillpondError', writable: true, configurable: true },
  [brand]: { value: true },
})

/** Stored bytes that the codec rejects. The handle works: `ack()` skips the item, `nack()` returns it. */
export class DecodeError extends MillpondError {
  declare readonly code: 'MILLPOND_DECODE'
  declare readonly id: number

  constructor(id: number, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : 'the codec threw a value that is not an Error'
    super('MILLPOND_DECODE', `entry ${id} cannot be decoded: ${reason}`, { id, cause })
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === DecodeError
      ? isBranded(value) && value.code === 'MILLPOND_DECODE'
      : Function.prototype[Symbol.hasInstance].call(this, value)
  }
}
Object.defineProperties(DecodeError.prototype, {
  name: { value: 'DecodeError', writable: true, configurable: true },
})

/** A {@link MillpondError} of one code. */
export type MillpondErrorOf<Code extends ErrorCode> = Code extends 'MILLPOND_DECODE'
  ? DecodeError
  : MillpondError & { readonly code: Code }

/** Whether `error` is a {@link MillpondError}, of the given code if one is given. */
export function isMillpondError(error: unknown): error is MillpondError
export function isMillpondError<Code extends ErrorCode>(error: unknown, code: Code): error is MillpondErrorOf<Code>
export function isMillpondError(error: unknown, code?: ErrorCode): boolean {
  return isBranded(error) && (code === undefined || error.code === code)
}
