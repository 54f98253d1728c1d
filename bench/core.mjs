// What criterion measured of the core (crates/millpond-bench), as one result and as plots.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { bars, lines, placeLine } from './plot.mjs'

/** The series of every group on a disk that the others are held against. */
const rawLoop = 'raw write + fdatasync'
/** Series whose pushes are answered without an fsync. */
const withoutFsync = new Set(['mem', 'none'])

/**
 * @typedef {object} Point
 * @property {string} series
 * @property {number} point Producers, entries of a commit, or bytes of an encoded value.
 * @property {number} perSecond Records: the mean of criterion's samples.
 * @property {number} perSecondLow The bounds of its 95 % confidence interval.
 * @property {number} perSecondHigh
 * @property {number | null} ofRaw As a share of the raw loop with as many records per sync, in the same group; null for
 *   the raw loop, and for what is answered without an fsync.
 *
 * @typedef {{ name: string, points: Point[] }} Group
 *
 * @typedef {object} Result
 * @property {number} payloadBytes
 * @property {'quick' | 'full'} length
 * @property {number} loadBefore What else the machine was doing: the load average of the minute before.
 * @property {string} rustc
 * @property {import('../scripts/device.mjs').Device} device
 * @property {import('../scripts/device.mjs').Machine} machine
 * @property {Group[]} groups
 */

/**
 * The groups below the folder that criterion wrote into.
 * @param {string} home
 * @returns {Group[]}
 */
export function groupsOf(home) {
  /** @type {Map<string, Point[]>} */
  const groups = new Map()
  for (const path of readdirSync(home, { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (!path.endsWith(join('new', 'benchmark.json'))) continue
    const read = (/** @type {string} */ name) => JSON.parse(readFileSync(join(home, path, '..', name), 'utf8'))
    const { group_id: group, function_id: series, value_str: value, throughput } = read('benchmark.json')
    const { mean } = read('estimates.json')
    const rate = (/** @type {number} */ nanoseconds) => ((throughput?.Elements ?? 1) * 1e9) / nanoseconds
    const points = groups.get(group) ?? []
    groups.set(group, points)
    points.push({
      series,
      point: Number(value),
      perSecond: rate(mean.point_estimate),
      perSecondLow: rate(mean.confidence_interval.upper_bound),
      perSecondHigh: rate(mean.confidence_interval.lower_bound),
      ofRaw: null,
    })
  }
  return [...groups].map(([name, points]) => ({ name, points: beside(points) }))
}

/**
 * Gives each point its share of the raw loop.
 * @param {Point[]} points
 */
function beside(points) {
  const raws = new Map(points.filter(isRaw).map(({ point, perSecond }) => [point, perSecond]))
  const shared = points.map((point) => {
    const raw = isRaw(point) || withoutFsync.has(point.series) ? undefined : raws.get(point.point)
    return Object.assign({}, point, { ofRaw: raw === undefined ? null : point.perSecond / raw })
  })
  return shared.toSorted((a, b) => a.point - b.point)
}

/** @param {Point} point */
function isRaw({ series }) {
  return series === rawLoop
}

/** Title and axis of the groups that are drawn over a number; the others are bars. */
const drawn = /** @type {Record<string, { title: string, xTitle?: string }>} */ ({
  'store push': { title: 'Pushes a second without an fsync, one thread, 256 bytes' },
  'store push reserve ack': { title: 'Entries a second pushed, reserved and acked without an fsync, one thread' },
  'store durable': { title: 'Durable pushes a second, group, 16 producers (in brackets: of the raw loop)' },
  durability: {
    title: 'Pushes a second on the log by policy (in brackets: of the raw loop)',
    xTitle: 'producers / records per sync of the raw loop',
  },
  batch: {
    title: 'Durable records a second by commits of many (in brackets: of the raw loop)',
    xTitle: 'records per commit / per sync of the raw loop',
  },
  producers: {
    title: 'Durable pushes a second, group (in brackets: of the raw loop)',
    xTitle: 'producers / records per sync of the raw loop',
  },
  'codec push': { title: 'Values a second encoded and pushed, in memory, one thread' },
  'codec deliver': { title: 'Values a second reserved, read and acked, in memory, one thread' },
})

/**
 * The plots of a result, by the name of their file.
 * @param {Result} result
 * @returns {[name: string, svg: string][]}
 */
export function plots({ groups, machine, device, rustc }) {
  return groups.map(({ name, points }) => {
    const { title, xTitle } = drawn[name] ?? { title: name }
    const by = placeLine(machine, device, rustc)
    const file = `core-${name.replaceAll(' ', '-')}.svg`
    if (xTitle === undefined) {
      const isCodec = name.startsWith('codec')
      const rows = points.map((point) => ({
        name: isCodec ? `${point.series}, ${point.point} bytes` : point.series,
        rate: point.perSecond,
        ofRaw: point.ofRaw,
        isRaw: isRaw(point),
      }))
      return [file, bars({ title, foot: by, bars: rows.toSorted((a, b) => b.rate - a.rate) })]
    }
    const names = [...new Set(points.map(({ series }) => series))]
    const series = names.map((one) => ({
      name: one,
      isRaw: one === rawLoop,
      points: points
        .filter((point) => point.series === one)
        .map(({ point, perSecond, ofRaw }) => ({ x: point, rate: perSecond, ofRaw })),
    }))
    return [file, lines({ title, foot: by, xTitle, series })]
  })
}

/** @param {Result} result */
export function table({ groups }) {
  const rows = groups.flatMap(({ name, points }) => [
    `\n${name}`,
    ...points.map(({ series, point, perSecond, ofRaw }) =>
      [
        `  ${series.padEnd(24)}`,
        point.toLocaleString('en-US').padStart(6),
        Math.round(perSecond).toLocaleString('en-US').padStart(14),
        ofRaw === null ? '' : `  ${ofRaw.toFixed(2)} of raw`,
      ].join(''),
    ),
  ])
  return ['series                     point     records/s', ...rows].join('\n')
}
