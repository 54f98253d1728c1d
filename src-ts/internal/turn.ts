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

/** Runs `settle` now, or in the next turn of the event loop if this one has lasted too long. */
export function atMostOneTurn(settle: () => void): void {
  if (isTurnOver()) setImmediate(settle)
  else settle()
}
