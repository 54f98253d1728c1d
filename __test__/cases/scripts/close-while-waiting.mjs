// Closes queues while others wait: every promise must settle, or Node ends with code 13.
import { Queue } from '../../../dist/index.js'

const [emptyPath, fullPath] = process.argv.slice(2)
const empty = await Queue.open(emptyPath ?? '')
const full = await Queue.open(fullPath ?? '', { capacity: 2 })
await full.pushMany(['a', 'b'])
const reserves = [empty.reserve(), empty.reserve(), empty.reserve()]
const pushes = Array.from({ length: 50 }, (_, n) => full.push(`waits ${n}`))
await new Promise((resolve) => setTimeout(resolve, 20))
const started = performance.now()
const closes = [empty.close(), full.close()]
const items = await Promise.all(reserves)
const settled = await Promise.allSettled(pushes)
await Promise.all(closes)
const tookMs = performance.now() - started
const codes = settled.map((push) => (push.status === 'rejected' ? push.reason.code : push.value))
console.log(JSON.stringify({ items, codes: [...new Set(codes)], count: codes.length, tookMs }))
