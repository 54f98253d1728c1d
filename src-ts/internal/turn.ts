/**
 * Endless chains of awaits that settle at once would starve timers and I/O: `process.nextTick` and promises run before
 * the event loop turns. This tells when a turn has lasted too long.
 */
const TURN_MS_MAX = 1

let turnBegan: number | undefined

/** Whether this turn of the event loop has lasted so long that the next settlement should wait for the next one. */
function isTurnOver(): boolean {
  const now = performance.now()
  if (turnBegan === undefined) {
    turnBegan = now
    setImmediate(() => {
      turnBegan = undefined
    })
    return false
  }
  return now - turnBegan > TURN_MS_MAX
}

let deferred = 0

function inNextTurn(settle: () => void): void {
  deferred++
  setImmediate(() => {
    deferred--
    settle()
  })
}

/** Runs `settle` now, or in the next turn of the event loop if this one has lasted too long. */
export function atMostOneTurn(settle: () => void): void {
  // In the order of the calls: not before one that waits already.
  if (deferred > 0 || isTurnOver()) inNextTurn(settle)
  else settle()
}

/** Runs `settle` after everything that waits for the next turn. */
export function afterDeferred(settle: () => void): void {
  if (deferred > 0) inNextTurn(settle)
  else settle()
}
