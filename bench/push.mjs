// Durable pushes from one JavaScript thread.
import { rmSync } from 'node:fs'
import { Queue, bytes } from 'millpond'

const warmUpSeconds = 0.3

/** @typedef {{ pushes: number, seconds: number, p50Micros: number, pushesPerCommit: number }} PushLap */

/**
 * Keeps `inFlight` pushes of `payloadBytes` under way, each counted when it is durable.
 * @param {{ dir: string, inFlight: number, payloadBytes: number, seconds: number }} input
 * @returns {Promise<PushLap>}
 */
export async function pushLap({ dir, inFlight, payloadBytes, seconds }) {
  const payload = new Uint8Array(payloadBytes).fill(7)
  // Far above what a lap can push: room is not what is measured.
  const queue = await Queue.open(dir, { codec: bytes(), durability: 'group', capacity: 2 ** 40 })
  try {
    await keepPushing(queue, payload, inFlight, warmUpSeconds)
    const before = queue.stats().commits
    const lap = await keepPushing(queue, payload, inFlight, seconds)
    const commits = queue.stats().commits - before
    return { ...lap, pushesPerCommit: lap.pushes / commits }
  } finally {
    await queue.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

/**
 * @param {Queue<Uint8Array>} queue
 * @param {Uint8Array} payload
 * @param {number} inFlight
 * @param {number} seconds
 */
async function keepPushing(queue, payload, inFlight, seconds) {
  /** @type {number[]} */
  const latencies = []
  let pushes = 0
  let isOver = false
  const started = performance.now()
  const end = started + seconds * 1000
  const produce = async () => {
    while (!isOver) {
      await queue.push(payload)
      pushes += 1
      if (pushes % 256 === 0 && performance.now() >= end) isOver = true
    }
  }
  const produceTimed = async () => {
    for (let last = performance.now(); last < end;) {
      await queue.push(payload)
      pushes += 1
      const now = performance.now()
      latencies.push(now - last)
      last = now
    }
  }
  if (inFlight === 1) await produceTimed()
  else await Promise.all(Array.from({ length: inFlight }, produce))
  const took = (performance.now() - started) / 1000
  latencies.sort((a, b) => a - b)
  return { pushes, seconds: took, p50Micros: (latencies[latencies.length >> 1] ?? 0) * 1000 }
}
