// Goes on after a failed sync: `failed-sync.mjs DIRECTORY`. Run under strace, which makes one sync fail.
import { Queue } from '../../../dist/index.js'

const path = process.argv[2] ?? ''
const queue = await Queue.open(path)
const stored = []
const failures = []
for (let n = 0; n < 12; n++) {
  try {
    stored.push(await queue.push(n))
  } catch (error) {
    const { code, outcome, errno, operation } = error
    failures.push({ code, outcome, errno, operation, path: typeof error.path })
  }
}
const item = await queue.reserve()
const read = item?.value
const ack = await item?.ack().catch((error) => error.code)
const poisoned = queue.stats().poisoned

// The stopped one gives way, although nobody closed it.
const next = await Queue.open(path)
const late = await next.push('late')
const delivered = []
for (let found = next.tryReserve(); found !== null; found = next.tryReserve()) delivered.push(found.id)
const old = await queue.push('old').catch((error) => error.code)
const closed = await queue.close().catch((error) => error.code)
await next.close()
console.log(JSON.stringify({ stored, failures, read, ack, poisoned, late, delivered, old, closed }))
