// The regular files of a folder, in a fixed order. Links are not followed: what they lead to is found by itself
// or lies outside.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @param {string} top
 * @param {ReadonlySet<string>} leftOut Absolute paths of folders that are not entered.
 * @param {(folder: string, error: Error) => void} onUnreadable
 * @returns {Generator<string>} Paths relative to `top`.
 */
export function* walk(top, leftOut, onUnreadable) {
  const folders = ['']
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    let entries
    try {
      entries = readdirSync(join(top, folder), { withFileTypes: true })
    } catch (error) {
      onUnreadable(folder, error instanceof Error ? error : new Error(String(error)))
      continue
    }
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isFile()) yield path
      else if (entry.isDirectory() && entry.name !== '.git' && !leftOut.has(join(top, path))) folders.push(path)
    }
  }
}
