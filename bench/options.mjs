// The flags of `npm run bench`.
import { resolve } from 'node:path'
import { flagsOf } from '../scripts/flags.mjs'

/** @typedef {{ rounds: number, seconds: number, isSaved: boolean, dir: string }} Options */

export const usage = `Usage: npm run bench -- [options]

Durable pushes of the queue beside the raw write + fdatasync loop of the same run, on the same file system.

  --quick   one round of 1.5 seconds a point (otherwise 3 rounds of 5 seconds, medians)
  --dir D   where the files go (default: target/bench); refused when that is in memory
  --save    write bench/results/durable-push.json and .svg
  --help    print this text
`

/**
 * @param {string[]} args
 * @param {string} defaultDir
 * @returns {Options | 'help'}
 */
export function parse(args, defaultDir) {
  const boolean = /** @type {const} */ ({ type: 'boolean', default: false })
  const string = /** @type {const} */ ({ type: 'string' })
  const flags = { quick: boolean, save: boolean, help: boolean, dir: string }
  const values = flagsOf(args, flags, usage)
  if (values.help) return 'help'
  return {
    ...(values.quick ? { rounds: 1, seconds: 1.5 } : { rounds: 3, seconds: 5 }),
    isSaved: values.save,
    dir: resolve(values.dir ?? defaultDir),
  }
}
