// Ends a Worker whose open() has succeeded but was never heard of: `unheard-open.mjs DIRECTORY ROUNDS`.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { Queue } from '../../../dist/index.js'

/** Whether a thread that opens is at work in this process. */
function isOpening() {
  return readdirSync('/proc/self/task').some((task) => {
    try {
      return readFileSync(`/proc/self/task/${task}/comm`, 'utf8').startsWith('millpond-open')
    } catch {
      return false
    }
  })
}

if (isMainThread) {
  const [path, rounds] = process.argv.slice(2)
  const codes = []
  for (let round = 0; round < Number(rounds); round++) {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: `${path}-${round}` })
    await new Promise((resolve) => worker.once('message', resolve))
    await worker.terminate()
    try {
      const queue = await Queue.open(`${path}-${round}`)
      codes.push(await queue.push('after'))
      await queue.close()
    } catch (error) {
      codes.push(error.code)
    }
  }
  console.log(JSON.stringify(codes))
} else {
  void Queue.open(workerData)
  // The event loop never turns, so the answer waits in it until it is torn down.
  while (!existsSync(`${workerData}/LOCK`) || isOpening()) continue
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of Node's has no origin
  parentPort.postMessage('opened')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
