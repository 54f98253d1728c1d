// Starts other programs. Everything they print goes to stderr, so that stdout stays free for results.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Failure } from './failure.mjs'

/** The folder of the checkout. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')

/**
 * Runs a program to its end. Rejects with a Failure unless it ends with 0.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ env?: Record<string, string>, cwd?: string, timeoutMs?: number }} [options]
 * @returns {Promise<void>}
 */
export function run(program, args, options = {}) {
  const line = [program, ...args].join(' ')
  const child = spawn(program, args, {
    cwd: options.cwd ?? root,
    timeout: options.timeoutMs,
    killSignal: 'SIGKILL',
    env: { ...process.env, ...options.env },
    stdio: ['ignore', process.stderr, process.stderr],
  })
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Failure(`${line}: ${error.message}`)))
    child.on('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Failure(`${line}: ${signal === null ? `exit code ${code}` : `ended by ${signal}`}`))
    })
  })
}

/**
 * What a program prints on stdout, or null when it is not there or fails.
 * @param {string} program
 * @param {readonly string[]} args
 * @returns {Promise<string | null>}
 */
export function output(program, args) {
  const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (chunk) => (text += chunk))
  return new Promise((resolve) => {
    child.on('error', () => resolve(null))
    child.on('close', (code) => resolve(code === 0 ? text.trim() : null))
  })
}

/**
 * Runs a program to its end, shows what it prints as it comes, and says what that was and how it ended.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ env?: Record<string, string> }} [options]
 * @returns {Promise<{ code: number | null, said: string }>}
 */
export function tell(program, args, options = {}) {
  const env = { ...process.env, ...options.env }
  const child = spawn(program, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8')
    stream.on('data', (chunk) => {
      said += chunk
      process.stderr.write(chunk)
    })
  }
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Failure(`${program}: ${error.message}`)))
    child.on('close', (code) => resolve({ code, said }))
  })
}
