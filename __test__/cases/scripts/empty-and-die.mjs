// Pushes three entries, acks them all, and dies without closing: `empty-and-die.mjs DIRECTORY`.
import { Queue } from '../../../dist/index.js'

const queue = await Queue.open(process.argv[2] ?? '')
const ids = await queue.pushMany(['a', 'b', 'c'])
await queue.ackMany(ids)
console.log(JSON.stringify(ids))
process.kill(process.pid, 'SIGKILL')
