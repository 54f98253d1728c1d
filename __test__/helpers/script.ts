import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const index = new URL('../../dist/index.js', import.meta.url).href

export interface Ended {
  readonly code: number | null
  readonly output: string
  /** From the line `READY` to the end. */
  readonly ms: number
}

/** Runs a script in a process of its own, on the built package; it may use what the package exports. */
export function runScript(body: string, args: readonly string[] = [], limitMs = 15_000): Promise<Ended> {
  const source = `import { Queue, bytes, json, isMillpondError } from ${JSON.stringify(index)}\n${body}`
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', source, ...args], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    let ready = performance.now()
    const onData = (chunk: Buffer): void => {
      output += chunk.toString()
      if (chunk.includes('READY')) ready = performance.now()
    }
    child.stdout.on('data', onData)
    child.stderr.on('data', onData)
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code, output, ms: performance.now() - ready })
    })
  })
}
