// The file the consumer writes its results to: one JSON line for each handled job.
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'

/**
 * @typedef {{ file: string }} Job What is pushed: a path relative to the folder that is fingerprinted.
 * @typedef {{ bytes: number, modified: number, sha256: string }} Fingerprint
 * @typedef {{ error: string }} Unreadable
 * @typedef {{ id: number, file: string } & (Fingerprint | Unreadable)} Result
 */

/** Appends results. A line that `write` returned from survives the end of this process, however it ends. */
export class ResultFile {
  /** @type {number} */
  #descriptor

  /** @param {string} path */
  constructor(path) {
    this.#descriptor = openSync(path, 'a+')
    // A kill in the middle of a write leaves half a line: the next line must not be glued to it.
    const { size } = fstatSync(this.#descriptor)
    const last = Buffer.alloc(1)
    if (size > 0 && readSync(this.#descriptor, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a) {
      writeSync(this.#descriptor, '\n')
    }
  }

  /** @param {Result} result */
  write(result) {
    writeSync(this.#descriptor, `${JSON.stringify(result)}\n`)
  }

  close() {
    closeSync(this.#descriptor)
  }
}

/**
 * All whole lines, none if there is no such file. A job that was handled twice has two lines; the later one counts.
 * @param {string} path
 * @returns {Map<number, Result>}
 */
export function readResults(path) {
  /** @type {Map<number, Result>} */
  const results = new Map()
  if (!existsSync(path)) return results
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const result = parse(line)
    if (result !== null) results.set(result.id, result)
  }
  return results
}

/**
 * @param {string} line
 * @returns {Result | null} null for half a line.
 */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
