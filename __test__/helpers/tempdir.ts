import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach } from 'vitest'

// On the disk that holds the repository: /tmp may be memory, where nothing is durable.
const base = fileURLToPath(new URL('../../target/tmp', import.meta.url))

const made: string[] = []

/** A new directory for queues; it goes when the test ends. */
export function tempDir(): string {
  mkdirSync(base, { recursive: true })
  const path = mkdtempSync(join(base, 'q-'))
  made.push(path)
  return path
}

afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true })
})
