// Works on a queue on a recorded disk and says, for each call and answer, how long the recording was:
// `work.mjs DIRECTORY DURABILITY FIRST-NONCE SEED ANSWERS close|kill RECORDING`. What crates/millpond-testkit/src/bin/block-rig/work.rs
// does in Rust, through the addon.
import { fstatSync, openSync, writeSync } from 'node:fs'
import { bytes, Queue } from '../../dist/index.js'
import { payload, Random } from './payload.mjs'

const [directory = '', durability, first = '', seed = '', answers, end, recording = ''] = process.argv.slice(2)
const random = new Random(BigInt(seed))
const place = openSync(recording, 'r')
let left = Number(answers)
let isOver = false

/**
 * One line with one write, complete when it returns.
 * @param {string} event
 */
function say(event) {
  writeSync(1, `${fstatSync(place).size} ${event}\n`)
}

/** @param {string} event */
function answered(event) {
  say(event)
  if (--left > 0) return
  if (end === 'kill') process.kill(process.pid, 'SIGKILL')
  isOver = true
}

const queue = await Queue.open(directory, { codec: bytes(), durability, capacity: 64, segmentBytes: 64 * 1024 })

/** @param {bigint} from */
async function produce(from) {
  for (let nonce = from; !isOver; nonce++) {
    say(`p ${nonce}`)
    try {
      const id = await queue.push(payload(nonce), { timeoutMs: 200 })
      answered(`a ${nonce} ${id}`)
    } catch (error) {
      // No room, for good when the consumers have gone.
      if (error.code !== 'MILLPOND_TIMEOUT') throw error
    }
    if (random.below(50) === 0) await new Promise((resolve) => setTimeout(resolve, random.below(3)))
  }
}

async function consume() {
  while (!isOver) {
    const item = await queue.reserve({ timeoutMs: 20 })
    if (item === null) continue
    const { id } = item
    const how = random.below(8)
    if (how === 0) {
      // Left to the next delivery.
      item.nack()
      continue
    }
    say(`s ${id}`)
    if (how === 1) await queue.ackMany([id])
    else await item.ack()
    answered(`k ${id}`)
  }
}

const producers = random.below(3) === 0 ? 1n : 8n
await Promise.all([
  ...Array.from({ length: Number(producers) }, (_, producer) => produce(BigInt(first) + (BigInt(producer) << 24n))),
  consume(),
  consume(),
])
await queue.close()
