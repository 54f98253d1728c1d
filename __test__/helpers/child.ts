import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** How a child process ended, and what it said. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** From the last line of standard output to the end of the process. */
  readonly lingeredMs: number
}

export interface ChildOptions {
  /** What runs Node, for example `['strace', '-f']`. */
  readonly wrapper?: readonly string[]
  readonly nodeArguments?: readonly string[]
  /** Kill the process if it has not ended by itself. */
  readonly limitMs?: number
  /** Called with the text so far; true kills the process with SIGKILL. */
  readonly killWhen?: (stdout: string) => boolean
}

/** Runs a script of `__test__` in a process of its own, against the built package. */
export async function runScript(script: string, args: readonly string[], options: ChildOptions = {}): Promise<Ended> {
  const path = fileURLToPath(new URL(`../${script}`, import.meta.url))
  const node = [process.execPath, ...(options.nodeArguments ?? []), path, ...args]
  const [command, ...rest] = [...(options.wrapper ?? []), ...node] as [string, ...string[]]
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  let last = performance.now()
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (chunk: string) => {
    stdout += chunk
    last = performance.now()
    if (options.killWhen?.(stdout) === true) child.kill('SIGKILL')
  })
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (chunk: string) => {
    stderr += chunk
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), options.limitMs ?? 60_000)
  const [code, signal, lingeredMs] = await new Promise<[number | null, NodeJS.Signals | null, number]>(
    (resolve, reject) => {
      child.on('error', reject)
      let exit: number
      child.on('exit', () => {
        exit = performance.now()
      })
      child.on('close', (closeCode, closeSignal) => {
        resolve([closeCode, closeSignal, exit - last])
      })
    },
  )
  clearTimeout(timer)
  return { code, signal, stdout, stderr, lingeredMs }
}
