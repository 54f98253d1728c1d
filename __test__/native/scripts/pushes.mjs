// Pushes from several producers: `pushes.mjs DIRECTORY DURABILITY PRODUCERS PUSHES`. Prints the ids.
import { Queue } from '../../../dist/index.js'

const [path, durability, producers, pushes] = process.argv.slice(2)
const queue = await Queue.open(path ?? '', { durability, capacity: 1_000_000 })
const ids = []
await Promise.all(
  Array.from({ length: Number(producers) }, async (_, producer) => {
    for (let n = 0; n < Number(pushes); n++) ids.push(await queue.push({ producer, n }))
  }),
)
console.log(JSON.stringify(ids))
process.kill(process.pid, 'SIGKILL')
