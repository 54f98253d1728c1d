// The flags of `npm start`.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { flagsOf, usageFailure } from '../scripts/flags.mjs'

/**
 * @typedef {'sync' | 'group' | 'none'} Durability
 * @typedef {{ json: boolean, dir: string, kills: number, durability: Durability, seed: number }} Options
 */

export const usage = `Usage: npm start -- [options]

Fingerprints the files of a folder through a durable queue, kills the process on the way, and checks
that nothing was lost.

  --dir D               the folder (default: this checkout)
  --kills N             how often the process is killed, 0 to 1000 (default: 5)
  --durability POLICY   sync, group or none (default: group)
  --seed N              makes the choice of moments repeatable
  --json                print the figures as one JSON line on stdout
  --help                print this text
`

/**
 * @param {string[]} args
 * @param {string} checkout The folder taken when none is named.
 * @returns {Options | 'help'}
 */
export function parse(args, checkout) {
  const string = /** @type {const} */ ({ type: 'string' })
  const boolean = /** @type {const} */ ({ type: 'boolean', default: false })
  const flags = { json: boolean, help: boolean, dir: string, kills: string, durability: string, seed: string }
  const values = flagsOf(args, flags, usage)
  if (values.help) return 'help'
  return {
    json: values.json,
    dir: folder(values.dir ?? checkout),
    kills: integer('--kills', values.kills ?? '5', 1000),
    durability: policy(values.durability ?? 'group'),
    seed: values.seed === undefined ? randomSeed() : integer('--seed', values.seed, 2 ** 32 - 1),
  }
}

/** @param {string} text */
function folder(text) {
  const path = resolve(text)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw usageFailure(`--dir: no such folder: ${path}`, usage)
  if (!stat.isDirectory()) throw usageFailure(`--dir: not a folder: ${path}`, usage)
  return path
}

/** @param {string} flag @param {string} text @param {number} largest */
function integer(flag, text, largest) {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value > largest) {
    throw usageFailure(`${flag}: not a whole number from 0 to ${largest}: ${JSON.stringify(text)}`, usage)
  }
  return value
}

/**
 * @param {string} text
 * @returns {Durability}
 */
function policy(text) {
  if (text === 'sync' || text === 'group' || text === 'none') return text
  throw usageFailure(`--durability: not one of sync, group, none: ${JSON.stringify(text)}`, usage)
}

function randomSeed() {
  return Math.floor(Math.random() * 2 ** 32)
}
