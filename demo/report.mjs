// The figures of a run: a table and one line in plain words, or one line of JSON.

/**
 * @typedef {object} Figures
 * @property {number} files
 * @property {number} bytes Of these files.
 * @property {number} pushed
 * @property {number} delivered
 * @property {number} redelivered
 * @property {number} lost
 * @property {number} kills
 * @property {number} pushedTwice
 * @property {number} changed
 * @property {number} unreadable
 * @property {number} leftInQueue
 * @property {number} durablePushesPerSecond
 * @property {number} commits
 * @property {number} itemsPerCommit
 * @property {number} seconds
 * @property {'sync' | 'group' | 'none'} durability
 * @property {number} seed
 * @property {string} fileSystem
 * @property {string} dir
 */

/** @param {Figures} figures */
export function table(figures) {
  const rate = figures.durability === 'none' ? 'pushes/s (not durable)' : 'durable pushes/s'
  /** @type {[name: string, value: number, note: string][]} */
  const rows = [
    ['files', figures.files, ''],
    ['pushed', figures.pushed, 'acknowledged to the producer'],
    ['delivered', figures.delivered, ''],
    ['redelivered', figures.redelivered, 'in flight when the process was killed'],
    ['lost', figures.lost, ''],
    ['kills', figures.kills, 'SIGKILL in the middle of the work'],
    [rate, figures.durablePushesPerSecond, 'while pushes were under way'],
    ['commits', figures.commits, 'that were reported'],
    ['items per commit', figures.itemsPerCommit, 'pushes and acks'],
  ]
  if (figures.pushedTwice > 0) {
    rows.push(['pushed twice', figures.pushedTwice, 'killed between commit and report: at least once'])
  }
  if (figures.changed > 0) rows.push(['changed', figures.changed, 'files that changed during the run'])
  if (figures.unreadable > 0) rows.push(['unreadable', figures.unreadable, 'recorded as such'])
  if (figures.leftInQueue > 0) rows.push(['left in the queue', figures.leftInQueue, 'should be 0'])
  const lines = rows.map(([name, value, note]) =>
    `  ${name.padEnd(24)}${number(value).padStart(11)}   ${note}`.trimEnd(),
  )
  return ['', ...lines, '', sentence(figures), ''].join('\n')
}

/** @param {Figures} figures */
function sentence(figures) {
  if (figures.files === 0) return 'There was nothing to do: the folder holds no file.'
  const kills = figures.kills === 1 ? '1 kill' : `${number(figures.kills)} kills`
  if (isGood(figures)) {
    const doubtful = figures.changed + figures.unreadable
    return doubtful === 0
      ? `Nothing was lost: all ${number(figures.pushed)} acknowledged jobs have the right result after ${kills}.`
      : `Nothing was lost: ${number(figures.pushed - doubtful)} acknowledged jobs have the right result after ${kills}; ` +
          `${number(doubtful)} files changed meanwhile or could not be read.`
  }
  if (figures.lost > 0) return `${number(figures.lost)} of ${number(figures.pushed)} acknowledged jobs were LOST.`
  return `The queue should be empty and holds ${number(figures.leftInQueue)} entries.`
}

/** @param {Figures} figures */
export function isGood(figures) {
  return figures.lost === 0 && figures.leftInQueue === 0
}

/** @param {number} value */
function number(value) {
  return value.toLocaleString('en-US')
}
