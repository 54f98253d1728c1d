// Random moments that a printed seed repeats.

/**
 * A small seeded generator (mulberry32).
 * @param {number} seed
 * @returns {() => number} Numbers from 0 to below 1.
 */
export function seeded(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * The step at which the next kill comes: somewhere in the next equal part of what is left to do, so that every
 * kill meets work under way, and none comes so late that the process may have ended by itself.
 * @param {{ done: number, total: number, kills: number, random: () => number }} work `kills` that are left.
 */
export function nextMoment({ done, total, kills, random }) {
  const left = Math.max(0, total * 0.95 - done)
  return done + 1 + Math.floor((random() * left) / kills)
}
