// The published crates beside ours: the figures of all rounds, and the bars that ours has to clear.
import { bars as draw, placeLine } from './plot.mjs'

/**
 * One measurement of one round.
 * @typedef {{ store: string, who: string, producers: number, perSecond: number }} Figure
 *
 * @typedef {object} Median
 * @property {string} store mem, log, redb, rocksdb; events: an event queue on RocksDB; disk: the raw write + fdatasync.
 * @property {string} who ours, theirs, raw, bare (threads without a queue); of the event queues: group, sync (ours), theirs.
 * @property {number} producers Records per sync or transaction of a raw loop.
 * @property {number} perSecond
 * @property {number[]} rounds The figures it is the median of.
 *
 * @typedef {{ name: string, ratio: number | null, least: number, verdict: 'pass' | 'MISS' | 'not measured' }} Bar
 */

/**
 * @param {Figure[]} figures
 * @returns {Median[]}
 */
export function medians(figures) {
  /** @type {Map<string, Median>} */
  const found = new Map()
  for (const { store, who, producers, perSecond } of figures) {
    const key = `${store} ${who} ${producers}`
    const median = found.get(key) ?? { store, who, producers, perSecond, rounds: [] }
    found.set(key, median)
    median.rounds.push(perSecond)
  }
  for (const median of found.values()) {
    const sorted = median.rounds.toSorted((a, b) => a - b)
    median.perSecond = sorted[sorted.length >> 1] ?? 0
  }
  return [...found.values()]
}

/**
 * @param {string} name @param {number | undefined} ours @param {number | undefined} other @param {number} least
 * @returns {Bar}
 */
function bar(name, ours, other, least) {
  if (ours === undefined || other === undefined) return { name, ratio: null, least, verdict: 'not measured' }
  const ratio = ours / other
  return { name, ratio, least, verdict: ratio >= least ? 'pass' : 'MISS' }
}

/**
 * The bars: each a ratio of two medians of the same rounds.
 * @param {Median[]} all
 * @returns {Bar[]}
 */
export function barsOf(all) {
  const rate = (/** @type {string} */ store, /** @type {string} */ who, /** @type {number} */ producers) =>
    all.find((one) => one.store === store && one.who === who && one.producers === producers)?.perSecond
  const best = all
    .filter(({ store, who }) => ['redb', 'rocksdb'].includes(store) && who === 'theirs')
    .reduce((most, { perSecond }) => Math.max(most, perSecond), 0)
  return [
    ...[1, 4, 16].map((n) => bar(`mem, none, ${n}: of theirs`, rate('mem', 'ours', n), rate('mem', 'theirs', n), 1.5)),
    ...[16, 64].map((n) => bar(`redb, group, ${n}: of theirs`, rate('redb', 'ours', n), rate('redb', 'theirs', n), 1)),
    ...[16, 64].map((n) => bar(`redb, group, ${n}: of raw redb`, rate('redb', 'ours', n), rate('redb', 'raw', n), 0.9)),
    bar('log, group, 64: of their best group', rate('log', 'ours', 64), best === 0 ? undefined : best, 5),
    bar('event queue, RocksDB, 16: of theirs', rate('events', 'group', 16), rate('events', 'theirs', 16), 3),
  ]
}

/** @param {Median[]} all @param {Bar[]} bars */
export function report(all, bars) {
  const figures = all.map(({ store, who, producers, perSecond, rounds }) => {
    const spread = `${Math.round(Math.min(...rounds)).toLocaleString('en-US')} to ${Math.round(Math.max(...rounds)).toLocaleString('en-US')}`
    return `${store.padEnd(9)}${who.padEnd(8)}${String(producers).padStart(9)}${Math.round(perSecond).toLocaleString('en-US').padStart(14)}   ${spread}`
  })
  const judged = bars.map(({ name, ratio, least, verdict }) => {
    const measured = ratio === null ? '-' : ratio.toFixed(2)
    return `${verdict.padEnd(14)}${name.padEnd(40)}${measured.padStart(8)}   at least ${least}`
  })
  return ['store    who     producers      records/s   of the rounds', ...figures, '', ...judged].join('\n')
}

/**
 * The durable figures of ours, theirs and the raw loops with the most producers.
 * @param {{ medians: Median[], device: import('../scripts/device.mjs').Device, machine: import('../scripts/device.mjs').Machine, rustc: string }} result
 */
export function plotOf({ medians: all, device, machine, rustc }) {
  const raw = all.find(({ store, who, producers }) => store === 'disk' && who === 'raw' && producers === 64)
  const events = all.filter(({ store }) => store === 'events')
  const rows = [...all.filter(({ store, producers }) => store !== 'mem' && producers === 64), ...events]
  const bars = rows.map(({ store, who, producers, perSecond }) => ({
    name:
      store === 'disk' && who === 'raw'
        ? 'raw write + fdatasync'
        : `${store}, ${who}${store === 'events' ? `, ${producers}` : ''}`,
    rate: perSecond,
    ofRaw:
      raw === undefined || producers !== 64 || (store === 'disk' && who === 'raw') ? null : perSecond / raw.perSecond,
    isRaw: who === 'raw',
  }))
  return draw({
    title: 'Durable 256-byte pushes a second: 64 producers, event queues 16 (in brackets: of the raw loop)',
    foot: placeLine(machine, device, rustc),
    bars: bars.toSorted((a, b) => b.rate - a.rate),
  })
}
