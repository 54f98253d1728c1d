// One life of the demonstration's process: a producer and a consumer on one queue. It is killed at any moment, so
// it tells the supervisor everything by writes that are complete when they return (descriptor 3), never by a stream.
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { Queue } from 'millpond'
import { fingerprint } from './fingerprint.mjs'
import { ResultFile } from './results.mjs'

const pushesInFlight = 64
const concurrency = 8

/**
 * @typedef {{ dir: string, queue: string, results: string, durability: 'sync' | 'group' | 'none' }} Life
 * @typedef {import('./results.mjs').Job} Job
 */

/** @type {Life} */
const life = JSON.parse(process.argv[2] ?? '')
/** @type {[index: number, file: string][]} */
const todo = JSON.parse(await readAll(process.stdin))

/** @type {Queue<Job>} */
const queue = await Queue.open(life.queue, { durability: life.durability, capacity: 1_000_000 })
const results = new ResultFile(life.results)
const beat = startBeat()
let isPushing = true
let inHand = 0
let reportedCommits = 0

await Promise.all([produce(), ...Array.from({ length: concurrency }, consume)])
clearInterval(beat.timer)
results.close()

async function produce() {
  const started = performance.now()
  const rest = todo.values()
  const pushRest = async () => {
    for (const [index, file] of rest) {
      const id = await queue.push({ file })
      report('pushed', index, id, Math.round((performance.now() - started) * 1000))
    }
  }
  await Promise.all(Array.from({ length: pushesInFlight }, pushRest))
  isPushing = false
  await closeWhenDone()
}

async function consume() {
  for (let item = await queue.reserve(); item !== null; item = await queue.reserve()) {
    inHand += 1
    report('delivered', item.id)
    const { file } = item.value
    const result = await fingerprint(join(life.dir, file), beat.add)
    results.write({ id: item.id, file, ...result })
    await item.ack()
    report('acked', item.id)
    inHand -= 1
    await closeWhenDone()
  }
}

/** Ends the waiting `reserve` calls once there is nothing left to wait for. */
async function closeWhenDone() {
  if (!isPushing && inHand === 0 && queue.length === 0) await queue.close()
}

/**
 * @param {string} kind
 * @param {...number} fields
 */
function report(kind, ...fields) {
  writeSync(3, `${[kind, ...fields].join(' ')}\n`)
  reportCommits()
}

function reportCommits() {
  const { commits, committedOps } = queue.stats()
  if (commits === reportedCommits) return
  reportedCommits = commits
  writeSync(3, `commits ${commits} ${committedOps}\n`)
}

/** Tells once a second that a long file is still being read. */
function startBeat() {
  let bytes = 0
  const timer = setInterval(() => {
    if (bytes > 0) writeSync(3, `read ${bytes}\n`)
    bytes = 0
  }, 1000)
  timer.unref()
  return { timer, add: (/** @type {number} */ more) => void (bytes += more) }
}

/** @param {NodeJS.ReadStream} stream */
async function readAll(stream) {
  let text = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream) text += chunk
  return text
}
