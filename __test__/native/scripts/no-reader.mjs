// Waits for items when no thread can be started: `no-reader.mjs [reserve]`. Run under strace, which refuses the thread.
import { Queue } from '../../../dist/index.js'

const queue = await Queue.open('unused', { backend: 'memory' })
if (process.argv[2] === 'reserve') {
  const codes = []
  let events = 0
  const failed = (error) => codes.push(error.code)
  await queue.reserveMany(5).catch(failed)
  // What is left of the demand is withdrawn; nothing answers that.
  for (; events < 20; events++) await new Promise((resolve) => setImmediate(resolve))
  await queue.reserveMany(3).catch(failed)
  const items = Promise.all([queue.reserve(), queue.reserve(), queue.reserveMany(2)])
  const ids = await queue.pushMany([1, 2, 3, 4])
  const taken = (await items).flat().map((item) => item.id)
  if (ids.length !== 4) throw new Error('not pushed')
  console.log(JSON.stringify({ codes, taken, ready: queue.readyLength, inFlight: queue.inFlight().length }))
}
await queue.close()
