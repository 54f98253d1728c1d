import { errorTable, MillpondError, type ErrorCode, type ErrorOutcome } from '../errors.ts'

/** A failure of the native side, as plain data. */
export interface Failure {
  readonly code: string
  readonly outcome: string
  readonly message: string
  readonly retryable?: boolean
  readonly id?: number | null
  readonly errno?: number | null
  readonly path?: string | null
  readonly operation?: string | null
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code)

/** The public error of a native failure, with the native one as its cause. */
export function errorOf(failure: Failure): MillpondError {
  const code = isErrorCode(failure.code) ? failure.code : 'MILLPOND_INTERNAL'
  const outcome: ErrorOutcome = failure.outcome === 'not-done' ? 'not-done' : 'unknown'
  return new MillpondError(code, failure.message, {
    outcome,
    id: failure.id ?? undefined,
    errno: failure.errno ?? undefined,
    path: failure.path ?? undefined,
    operation: failure.operation ?? undefined,
    cause: failure,
  })
}

/** What the native side threw: only a panic that it caught, or a broken call. */
export function failureOfThrown(thrown: unknown): Failure {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return { code: 'MILLPOND_INTERNAL', outcome: 'unknown', message: `the addon failed: ${message}` }
}

export const closedFailure: Failure = {
  code: 'MILLPOND_CLOSED',
  outcome: 'not-done',
  message: 'the queue is closed',
}

/**
 * A promise that rejects with the error of `failure`.
 *
 * The error is made one microtask later, in a reaction whose promise leads to whoever awaits: so its stack names the
 * caller's `await`, and calls that succeed pay nothing for it.
 */
export function rejectAtAwait(resolve: (value: Promise<never>) => void, failure: Failure): void {
  let begin: (() => void) | undefined
  const rejected = new Promise<void>((run) => {
    begin = run
  }).then((): never => {
    throw errorOf(failure)
  })
  resolve(rejected)
  begin?.()
}

/** What one call to the addon stands for: failures are values, and what it throws becomes one. */
export function attempt<Answer>(call: () => Answer): Answer | Failure {
  try {
    return call()
  } catch (error) {
    return failureOfThrown(error)
  }
}

export function isFailure(answer: unknown): answer is Failure {
  return typeof answer === 'object' && answer !== null && 'outcome' in answer
}
