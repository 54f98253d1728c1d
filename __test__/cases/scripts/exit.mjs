// How a process ends: `exit.mjs CASE PATH COUNT [worker]`. The last line it prints is its last act.
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { Queue } from '../../../dist/index.js'

const [kind, path, count, where] = isMainThread ? process.argv.slice(2) : workerData

async function run() {
  const queues = await Promise.all(Array.from({ length: Number(count) }, (_, n) => Queue.open(`${path}-${n}`)))
  for (const queue of queues) {
    switch (kind) {
      case 'a':
        break
      case 'b':
        await queue.push('b')
        break
      case 'c':
        void queue.push('c')
        break
      case 'd':
        void queue.reserve()
        break
      case 'e':
        void queue.reserve({ unref: true })
        break
      case 'f':
        await queue.close()
        break
      default:
        throw new Error(`no case ${kind}`)
    }
  }
  console.log('done')
}

if (where === 'worker' && isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: [kind, path, count] })
  worker.on('error', (error) => {
    throw error
  })
} else {
  await run()
}
