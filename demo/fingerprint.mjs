// The work itself: the SHA-256 of one file.
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

/**
 * @param {string} path
 * @param {(bytes: number) => void} onBytes
 * @returns {Promise<import('./results.mjs').Fingerprint | import('./results.mjs').Unreadable>}
 */
export async function fingerprint(path, onBytes) {
  try {
    const handle = await open(path)
    try {
      const { mtimeMs } = await handle.stat()
      const hash = createHash('sha256')
      const buffer = Buffer.allocUnsafe(64 * 1024)
      let bytes = 0
      for (;;) {
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, null)
        if (bytesRead === 0) break
        hash.update(buffer.subarray(0, bytesRead))
        bytes += bytesRead
        onBytes(bytesRead)
      }
      return { bytes, modified: mtimeMs, sha256: hash.digest('hex') }
    } finally {
      await handle.close()
    }
  } catch (error) {
    return { error: error instanceof Error && 'code' in error ? String(error.code) : String(error) }
  }
}
