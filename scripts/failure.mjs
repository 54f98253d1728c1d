// What a script says, and how it ends when it cannot go on.

/** An end that a person can act on: printed as it is, without a stack. */
export class Failure extends Error {
  /** @param {string} message @param {number} exitCode */
  constructor(message, exitCode = 1) {
    super(message)
    this.name = 'Failure'
    this.exitCode = exitCode
  }
}

/** What could not be tried on this machine, and why. Neither passed nor failed. */
export class NotRun extends Error {
  /** @param {string} reason */
  constructor(reason) {
    super(reason)
    this.name = 'NotRun'
  }
}

/** @param {string} text */
export function say(text) {
  process.stderr.write(`${text}\n`)
}

/**
 * Runs a script's main part and sets the exit code.
 * @param {() => Promise<number>} main
 */
export async function runMain(main) {
  try {
    process.exitCode = await main()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    say(`failed: ${error.message}`)
    process.exitCode = error.exitCode
  }
}
