// The comparison: for each number of pushes in flight, the raw loop with as many records per sync before and after
// it, so that a disk that drifts drifts for both.
import { join } from 'node:path'
import { deviceOf, machine } from '../scripts/device.mjs'
import { pushLap } from './push.mjs'
import { RawLoop } from './raw-loop.mjs'

const payloadBytes = 256
const inFlights = [1, 64, 1024, 4096]

/**
 * @typedef {object} Point
 * @property {number} inFlight Pushes in flight, and records per sync of the raw loop.
 * @property {number} rawPerSecond Records.
 * @property {number} queuePerSecond Durable pushes.
 * @property {number} ratio The queue's rate as a share of the raw loop's.
 * @property {number} rawP50Micros One write + fdatasync.
 * @property {number} queueP50Micros One awaited push; 0 where more than one is in flight.
 * @property {number} pushesPerCommit
 *
 * @typedef {object} Comparison
 * @property {number} payloadBytes
 * @property {number} rounds
 * @property {number} seconds Of each point in each round.
 * @property {import('../scripts/device.mjs').Device} device
 * @property {import('../scripts/device.mjs').Machine} machine
 * @property {Point[]} points
 */

/**
 * @param {{ dir: string, rawLoop: string, rounds: number, seconds: number, onPoint: (text: string) => void }} input
 * @returns {Promise<Comparison>}
 */
export async function compare({ dir, rawLoop, rounds, seconds, onPoint }) {
  const device = deviceOf(dir)
  const raw = new RawLoop(rawLoop, join(dir, 'raw.dat'))
  /** @type {Point[][]} */
  const laps = []
  try {
    for (let round = 1; round <= rounds; round += 1) {
      for (const [index, inFlight] of inFlights.entries()) {
        onPoint(`round ${round} of ${rounds}: ${inFlight} in flight`)
        const bytes = inFlight * payloadBytes
        const before = await raw.run(bytes, seconds / 2)
        const push = await pushLap({ dir: join(dir, 'queue'), inFlight, payloadBytes, seconds })
        const after = await raw.run(bytes, seconds / 2)
        const rawPerSecond = ((before.syncs + after.syncs) / (before.seconds + after.seconds)) * inFlight
        const queuePerSecond = push.pushes / push.seconds
        ;(laps[index] ??= []).push({
          inFlight,
          rawPerSecond,
          queuePerSecond,
          ratio: queuePerSecond / rawPerSecond,
          rawP50Micros: (before.p50Micros + after.p50Micros) / 2,
          queueP50Micros: push.p50Micros,
          pushesPerCommit: push.pushesPerCommit,
        })
      }
    }
  } finally {
    await raw.close()
  }
  return { payloadBytes, rounds, seconds, device, machine: machine(), points: laps.map(medians) }
}

/**
 * @param {Point[]} laps At least one.
 * @returns {Point}
 */
function medians(laps) {
  const median = (/** @type {keyof Point} */ name) => {
    const values = laps.map((lap) => lap[name]).toSorted((a, b) => a - b)
    return values[values.length >> 1] ?? 0
  }
  return {
    inFlight: median('inFlight'),
    rawPerSecond: median('rawPerSecond'),
    queuePerSecond: median('queuePerSecond'),
    ratio: median('ratio'),
    rawP50Micros: median('rawP50Micros'),
    queueP50Micros: median('queueP50Micros'),
    pushesPerCommit: median('pushesPerCommit'),
  }
}
