// The demonstration: jobs for real files go through a queue whose process is killed on the way; an independent
// check then looks whether anything that was acknowledged got lost.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { deviceOf } from '../scripts/device.mjs'
import { Failure } from '../scripts/failure.mjs'
import { live } from './life.mjs'
import { Progress } from './progress.mjs'
import { nextMoment, seeded } from './random.mjs'
import { isGood, table } from './report.mjs'
import { Tally } from './tally.mjs'
import { verify } from './verify.mjs'
import { walk } from './walk.mjs'

/**
 * @param {import('./options.mjs').Options} options
 * @param {string} checkout
 * @param {AbortSignal} signal
 * @returns {Promise<number>} The exit code.
 */
export async function demonstrate(options, checkout, signal) {
  const started = performance.now()
  const progress = new Progress()
  const target = join(checkout, 'target')
  const leftOut = new Set([target])
  const files = [
    ...walk(options.dir, leftOut, (folder, error) => progress.say(`left out: ${folder}: ${error.message}`)),
  ]

  mkdirSync(join(target, 'demo'), { recursive: true })
  const own = mkdtempSync(join(target, 'demo/run-'))
  const device = deviceOf(own)
  progress.say(`${files.length} files of ${options.dir}; queue on ${device.fileSystem} (${device.device})`)
  progress.say(`durability ${options.durability}, ${options.kills} kills, seed ${options.seed}`)

  // Whatever goes wrong, what it went wrong with stays.
  let isKept = true
  try {
    const tally = new Tally()
    const life = {
      dir: options.dir,
      queue: join(own, 'queue'),
      results: join(own, 'results.jsonl'),
      durability: options.durability,
    }
    if (files.length > 0) await liveAllLives({ options, files, tally, life, progress, signal })

    progress.say('checking every result')
    const acknowledged = new Map(
      [...tally.acknowledged].map(([id, index]) => [id, /** @type {string} */ (files[index])]),
    )
    const leftInQueue = files.length > 0 ? await lengthOf(life.queue) : 0
    const verdict = await verify({
      dir: options.dir,
      leftOut,
      results: life.results,
      acknowledged,
      onProgress: (done) => progress.show(() => `checked ${done} of ${acknowledged.size}`),
    })
    const missing = files.length - new Set(tally.acknowledged.values()).size
    if (missing > 0) throw new Failure(`${missing} files were never acknowledged`)

    /** @type {import('./report.mjs').Figures} */
    const figures = {
      files: files.length,
      bytes: verdict.bytes,
      pushed: tally.acknowledged.size,
      delivered: tally.delivered,
      redelivered: tally.redelivered,
      lost: verdict.lost,
      kills: tally.kills,
      pushedTwice: verdict.pushedTwice,
      changed: verdict.changed,
      unreadable: verdict.unreadable,
      leftInQueue,
      durablePushesPerSecond: ratio(tally.acknowledged.size, tally.pushSeconds, 0),
      commits: tally.commits,
      itemsPerCommit: ratio(tally.operations, tally.commits, 1),
      seconds: ratio(performance.now() - started, 1000, 2),
      durability: options.durability,
      seed: options.seed,
      fileSystem: device.fileSystem,
      dir: options.dir,
    }
    for (const complaint of verdict.complaints) progress.say(`lost: ${complaint}`)
    progress.clear()
    isKept = !isGood(figures)
    process.stdout.write(options.json ? `${JSON.stringify(figures)}\n` : table(figures))
    return isKept ? 1 : 0
  } finally {
    if (isKept && !signal.aborted) progress.say(`the queue and the results are kept in ${own}`)
    else rmSync(own, { recursive: true, force: true })
  }
}

/**
 * @param {object} input
 * @param {import('./options.mjs').Options} input.options
 * @param {readonly string[]} input.files
 * @param {Tally} input.tally
 * @param {import('./worker.mjs').Life} input.life
 * @param {Progress} input.progress
 * @param {AbortSignal} input.signal
 */
async function liveAllLives({ options, files, tally, life, progress, signal }) {
  const random = seeded(options.seed)
  const total = files.length * 2
  const kills = () => options.kills - tally.kills
  const state = () =>
    `pushed ${tally.acknowledged.size} of ${files.length}, done ${tally.acked}, ` +
    `redelivered ${tally.redelivered}, kills ${tally.kills} of ${options.kills}`
  for (;;) {
    const moment = kills() > 0 ? nextMoment({ done: tally.steps, total, kills: kills(), random }) : Infinity
    const done = new Set(tally.acknowledged.values())
    const todo = [...files.entries()].filter(([index]) => !done.has(index))
    tally.beginLife()
    const end = await live({
      life,
      todo,
      signal,
      onLine: (line) => {
        tally.take(line)
        progress.show(state)
        return tally.steps >= moment
      },
    })
    if (end === 'ended') return
    tally.kills += 1
    progress.say(`kill ${tally.kills}: ${state()}`)
  }
}

/** @param {string} path */
async function lengthOf(path) {
  // Not before set-up has built it.
  const { Queue } = await import('millpond')
  const queue = await Queue.open(path)
  const { length } = queue
  await queue.close()
  return length
}

/** @param {number} value @param {number} by @param {number} digits */
function ratio(value, by, digits) {
  return by > 0 ? Number((value / by).toFixed(digits)) : 0
}
