// Works on one queue directory after the other, each until the machine it is on is cut off: a line
// `DIRECTORY DURABILITY FIRST-NONCE SEED ANSWERS drain|keep` on standard input for each. First it says what is there
// (`length N`, `entry ID NONCE`, `seen`), then every call and answer, and at last `over WHY`. With `drain` it acks
// everything that it found.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { bytes, Queue } from '../../dist/index.js'
import { nonceOf, payload, Random } from '../power-cut/payload.mjs'

/** The longest one directory may take, in milliseconds; then it hangs. */
const LIMIT = 60_000

/** @param {string} text */
const say = (text) => writeSync(1, `${text}\n`)

/** @param {unknown} error */
function codeOf(error) {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (!code.startsWith('MILLPOND_')) throw error
  return code
}

/**
 * Everything that is there, in flight.
 * @param {Queue<Uint8Array>} queue
 */
function look(queue) {
  const items = []
  const lines = [`length ${queue.length}`]
  for (let item = queue.tryReserve(); item !== null; item = queue.tryReserve()) {
    lines.push(`entry ${item.id} ${nonceOf(Buffer.from(item.value)) ?? 'foreign'}`)
    items.push(item)
  }
  say([...lines, 'seen'].join('\n'))
  return items
}

/** One life of a queue: producers and consumers, until a call fails or there were enough answers. */
class Life {
  /** @readonly */
  #queue
  /** @readonly */
  #random
  #left
  /** @type {string | null} */
  why = null

  /**
   * @param {Queue<Uint8Array>} queue
   * @param {Random} random
   * @param {number} answers
   */
  constructor(queue, random, answers) {
    this.#queue = queue
    this.#random = random
    this.#left = answers
  }

  /** @param {string} event */
  #answered(event) {
    say(event)
    if (--this.#left <= 0) this.why ??= 'enough'
  }

  /** @param {{ id: number, ack(): Promise<unknown> }} item */
  async ack(item) {
    say(`s ${item.id}`)
    await item.ack()
    this.#answered(`k ${item.id}`)
  }

  /** @param {bigint} first */
  async #produce(first) {
    for (let nonce = first; this.why === null; nonce++) {
      say(`p ${nonce}`)
      try {
        this.#answered(`a ${nonce} ${await this.#queue.push(payload(nonce), { timeoutMs: 20 })}`)
      } catch (error) {
        // No room: consumers come later.
        if (codeOf(error) !== 'MILLPOND_TIMEOUT') throw error
      }
    }
  }

  async #consume() {
    while (this.why === null) {
      const item = await this.#queue.reserve({ timeoutMs: 5 })
      if (item === null) continue
      const how = this.#random.below(8)
      if (how === 0) {
        // Left to the next delivery.
        item.nack()
      } else if (how === 1) {
        say(`s ${item.id}`)
        await this.#queue.ackMany([item.id])
        this.#answered(`k ${item.id}`)
      } else {
        await this.ack(item)
      }
    }
  }

  /**
   * The end of one of the parties is the end of all.
   * @param {bigint} first
   */
  async work(first) {
    const producers = this.#random.below(3) === 0 ? 1 : 6
    const parties = Array.from({ length: producers }, (_, number) => this.#produce(first + (BigInt(number) << 24n)))
    parties.push(this.#consume(), this.#consume())
    const end = (/** @type {unknown} */ error) => {
      this.why ??= codeOf(error)
    }
    await Promise.all(parties.map((party) => party.catch(end)))
  }
}

/** @param {string[]} words */
async function live([directory = '', durability, first = '', seed = '', answers, how]) {
  let queue
  try {
    queue = await Queue.open(directory, { codec: bytes(), durability, capacity: 64, segmentBytes: 64 * 1024 })
  } catch (error) {
    return `refused ${codeOf(error)}`
  }
  if (queue.recovery.damage.length > 0) say(`damage ${JSON.stringify(queue.recovery.damage)}`)
  const life = new Life(queue, new Random(BigInt(seed)), Number(answers))
  try {
    const items = look(queue)
    if (how === 'drain') await Promise.all(items.map((item) => life.ack(item)))
    else for (const item of items) item.nack()
    await life.work(BigInt(first))
    await queue.close()
  } catch (error) {
    life.why = codeOf(error)
  }
  // A queue that has stopped keeps its directory until it is closed.
  await queue.close().catch(codeOf)
  return life.why
}

for await (const line of createInterface({ input: process.stdin })) {
  const alarm = setTimeout(() => process.exit(3), LIMIT)
  say(`over ${await live(line.split(' '))}`)
  clearTimeout(alarm)
}
