// Drops handles whose ack failed: `dropped-after-failed-ack.mjs DIRECTORY`. Run under strace, which makes a sync fail.
import { Queue } from '../../../dist/index.js'

const turn = () => new Promise((resolve) => setImmediate(resolve))
const queue = await Queue.open(process.argv[2] ?? '')
const warnings = []
queue.on('warning', (warning) => warnings.push(warning.name))
await queue.push('item')

/** Takes the item, fails to ack it, and drops it; `turns` after it was delivered. */
async function takeAndDrop(turns) {
  const item = await queue.reserve()
  for (let i = 0; i < turns; i++) await turn()
  const code = await item?.ack().catch((error) => error.code)
  return [code, item?.deliveries, item?.settled, queue.readyLength]
}

const seen = []
for (const turns of [3, 0, 3]) {
  seen.push(await takeAndDrop(turns))
  for (let i = 0; i < 5; i++) {
    await turn()
    globalThis.gc()
    await turn()
  }
  seen.push(queue.readyLength)
}
console.log(JSON.stringify({ seen, warnings }))
await queue.close().catch(() => {})
