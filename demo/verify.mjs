// The judge. It shares no code with the consumer: its own walk, its own hashing.
import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { readResults } from './results.mjs'
import { walk } from './walk.mjs'

/**
 * @typedef {object} Verdict
 * @property {number} right Acknowledged jobs whose result is right.
 * @property {number} bytes Read to find that out.
 * @property {number} lost Acknowledged jobs with no result or a wrong one.
 * @property {number} changed Files that changed, came or went while the demonstration ran: no verdict possible.
 * @property {number} unreadable Files that neither side could read.
 * @property {number} pushedTwice Jobs that a kill cut off between commit and report, so that they were pushed again.
 * @property {string[]} complaints The first lost jobs, in words.
 */

/**
 * @param {object} input
 * @param {string} input.dir
 * @param {ReadonlySet<string>} input.leftOut
 * @param {string} input.results
 * @param {ReadonlyMap<number, string>} input.acknowledged Files by id.
 * @param {(done: number) => void} input.onProgress
 * @returns {Promise<Verdict>}
 */
export async function verify({ dir, leftOut, results, acknowledged, onProgress }) {
  const found = readResults(results)
  const files = new Set(walk(dir, leftOut, () => {}))
  /** @type {Verdict} */
  const verdict = { right: 0, bytes: 0, lost: 0, changed: 0, unreadable: 0, pushedTwice: 0, complaints: [] }
  const lose = (/** @type {string} */ complaint) => {
    verdict.lost += 1
    if (verdict.complaints.length < 5) verdict.complaints.push(complaint)
  }
  let done = 0
  for (const [id, file] of acknowledged) {
    const result = found.get(id)
    const now = files.has(file) ? digest(join(dir, file)) : null
    verdict.bytes += now?.bytes ?? 0
    if (result === undefined) lose(`id ${id}: no result (${file})`)
    else if (result.file !== file) lose(`id ${id}: the result is of ${result.file}, pushed was ${file}`)
    else if ('error' in result && now === null) verdict.unreadable += 1
    else if ('error' in result || now === null) verdict.changed += 1
    else if (result.sha256 === now.sha256) verdict.right += 1
    else if (result.modified !== now.modified || result.bytes !== now.bytes) verdict.changed += 1
    else lose(`id ${id}: wrong fingerprint (${file})`)
    done += 1
    onProgress(done)
    // The progress line and signals get their turn.
    if (done % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  for (const id of found.keys()) if (!acknowledged.has(id)) verdict.pushedTwice += 1
  return verdict
}

/** @param {string} path */
function digest(path) {
  let descriptor
  try {
    descriptor = openSync(path, 'r')
    const { mtimeMs, size } = fstatSync(descriptor)
    const hash = createHash('sha256')
    const buffer = Buffer.alloc(1024 * 1024)
    for (let n = readSync(descriptor, buffer); n > 0; n = readSync(descriptor, buffer)) {
      hash.update(buffer.subarray(0, n))
    }
    return { sha256: hash.digest('hex'), modified: mtimeMs, bytes: size }
  } catch {
    return null
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}
