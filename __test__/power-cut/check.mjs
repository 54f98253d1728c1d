// Opens what crashes left through the addon and says what is in it: a directory on each line of standard input. The
// answers are those of `Drained` in crates/millpond-testkit/src/oracle.rs, or a line `damage`: a crash makes none.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { bytes, Queue } from '../../dist/index.js'
import { nonceOf } from './payload.mjs'

/** The longest an image may take, in milliseconds; then it hangs. */
const LIMIT = 60_000

/** @param {string} path */
async function check(path) {
  // What the check itself writes is thrown away with the image.
  const queue = await Queue.open(path, { codec: bytes(), durability: 'none' })
  const { damage } = queue.recovery
  if (damage.length > 0) return `damage ${JSON.stringify(damage)}\n`
  const lines = [`length ${queue.length}`]
  for (let item = queue.tryReserve(); item !== null; item = queue.tryReserve()) {
    lines.push(`entry ${item.id} ${nonceOf(Buffer.from(item.value)) ?? 'foreign'}`)
    await item.ack()
  }
  lines.push(`left ${queue.length}`)
  const next = await queue.push(Buffer.from('the next id'))
  await queue.ack(next)
  lines.push(`next ${next}`, 'end')
  await queue.close()
  return `${lines.join('\n')}\n`
}

for await (const path of createInterface({ input: process.stdin })) {
  const alarm = setTimeout(() => process.exit(3), LIMIT)
  writeSync(1, await check(path))
  clearTimeout(alarm)
}
