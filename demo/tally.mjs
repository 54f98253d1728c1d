// What the supervisor knows: every line that reached it from any life of the process.

import { Failure } from '../scripts/failure.mjs'

/** The sum of all lives. */
export class Tally {
  /** Acknowledged pushes, by id. @type {Map<number, number>} */
  acknowledged = new Map()
  /** Deliveries of each id. @type {Map<number, number>} */
  deliveries = new Map()
  acked = 0
  delivered = 0
  redelivered = 0
  kills = 0
  bytesRead = 0
  #commits = { before: 0, now: 0 }
  #operations = { before: 0, now: 0 }
  #pushMicros = { before: 0, now: 0 }

  /** Steps of the work that are done: pushes and acks. */
  get steps() {
    return this.acknowledged.size + this.acked
  }

  get commits() {
    return this.#commits.before + this.#commits.now
  }

  get operations() {
    return this.#operations.before + this.#operations.now
  }

  /** Time in which pushes were under way, in seconds. */
  get pushSeconds() {
    return (this.#pushMicros.before + this.#pushMicros.now) / 1e6
  }

  /** A new life counts from 0 again. */
  beginLife() {
    for (const sum of [this.#commits, this.#operations, this.#pushMicros]) {
      sum.before += sum.now
      sum.now = 0
    }
  }

  /** @param {string} line */
  take(line) {
    const [kind, ...fields] = line.split(' ')
    const [a = 0, b = 0, c = 0] = fields.map(Number)
    switch (kind) {
      case 'pushed':
        if (this.acknowledged.has(b)) throw new Failure(`id ${b} was given out twice`)
        this.acknowledged.set(b, a)
        this.#pushMicros.now = Math.max(this.#pushMicros.now, c)
        break
      case 'delivered': {
        const before = this.deliveries.get(a) ?? 0
        this.deliveries.set(a, before + 1)
        this.delivered += 1
        if (before > 0) this.redelivered += 1
        break
      }
      case 'acked':
        this.acked += 1
        break
      case 'commits':
        this.#commits.now = a
        this.#operations.now = b
        break
      case 'read':
        this.bytesRead += a
        break
      default:
        throw new Failure(`a line the supervisor does not know: ${JSON.stringify(line)}`)
    }
  }
}
