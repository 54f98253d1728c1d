// The flags of a command.
import { parseArgs } from 'node:util'
import { Failure } from './failure.mjs'

/** @param {string} message @param {string} usage */
export function usageFailure(message, usage) {
  return new Failure(`${message}\n\n${usage}`, 2)
}

/**
 * @template {NonNullable<import('node:util').ParseArgsConfig['options']>} Flags
 * @param {string[]} args
 * @param {Flags} options
 * @param {string} usage
 */
export function flagsOf(args, options, usage) {
  try {
    return parseArgs({ args, options, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw usageFailure(error instanceof Error ? error.message : String(error), usage)
  }
}
