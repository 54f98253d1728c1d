// One life of the worker process, from start to its end or its kill.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Failure } from '../scripts/failure.mjs'

const worker = fileURLToPath(new URL('worker.mjs', import.meta.url))
const silenceMax = 120_000

/**
 * @param {object} input
 * @param {import('./worker.mjs').Life} input.life
 * @param {readonly (readonly [index: number, file: string])[]} input.todo
 * @param {(line: string) => boolean} input.onLine true: kill the process now.
 * @param {AbortSignal} input.signal
 * @returns {Promise<'ended' | 'killed'>} Settles when every line that the life wrote has been taken.
 */
export function live({ life, todo, onLine, signal }) {
  const child = spawn(process.execPath, [worker, JSON.stringify(life)], {
    stdio: ['pipe', 'ignore', 'inherit', 'pipe'],
  })
  const list = /** @type {import('node:stream').Writable} */ (child.stdin)
  const lines = /** @type {import('node:stream').Readable} */ (child.stdio[3])
  let isKilled = false
  let rest = ''

  return new Promise((resolve, reject) => {
    /** @type {Error | null} */
    let failure = null
    const fail = (/** @type {Error} */ error) => {
      failure ??= error
      child.kill('SIGKILL')
    }
    const abort = () => fail(new Failure('interrupted', 130))
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    const silence = setTimeout(() => fail(new Failure(`no sign of life for ${silenceMax / 1000} s`)), silenceMax)

    lines.setEncoding('utf8')
    lines.on('data', (/** @type {string} */ chunk) => {
      silence.refresh()
      const parts = (rest + chunk).split('\n')
      // What is left without an end of line is cut by the kill, and counts as never said.
      rest = parts.pop() ?? ''
      try {
        for (const line of parts) {
          if (onLine(line) && !isKilled) isKilled = child.kill('SIGKILL')
        }
      } catch (error) {
        fail(error instanceof Error ? error : new Error(String(error)))
      }
    })

    // A killed worker does not read its list to the end.
    list.on('error', () => {})
    list.end(JSON.stringify(todo))
    child.on('error', fail)
    // `close` comes after the last line, `exit` may come before it.
    child.on('close', (code, by) => {
      clearTimeout(silence)
      signal.removeEventListener('abort', abort)
      if (failure !== null) reject(failure)
      else if (code === 0) resolve('ended')
      else if (isKilled && by === 'SIGKILL') resolve('killed')
      else reject(new Failure(`the process ended unasked: ${by ?? `exit code ${code}`}`))
    })
  })
}
