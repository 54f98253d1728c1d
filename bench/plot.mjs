// Figures as SVG: rates on a logarithmic axis over a few numbers, with the figures in a table below; or rates as bars.

const width = 760
const left = 96
const right = 24
const colours = ['#0b6e99', '#c2410c', '#15803d', '#7e22ce', '#b45309', '#be185d', '#0f766e']
const rawColour = '#8a8a8a'

/**
 * @typedef {object} Series
 * @property {string} name
 * @property {boolean} isRaw The disk's own rate, which the others are held against.
 * @property {{ x: number, rate: number, ofRaw: number | null }[]} points
 *
 * @typedef {{ title: string, foot: string, xTitle: string, series: Series[] }} Lines
 * @typedef {{ name: string, rate: number, ofRaw: number | null, isRaw: boolean }} Bar
 * @typedef {{ title: string, foot: string, bars: Bar[] }} Bars
 */

/** @param {Lines} chart */
export function lines({ title, foot, xTitle, series }) {
  const all = series.flatMap(({ points }) => points)
  const columns = [...new Set(all.map(({ x }) => x))].toSorted((a, b) => a - b)
  const rates = all.map(({ rate }) => rate)
  const first = Math.floor(Math.log10(Math.min(...rates)))
  const last = Math.max(Math.ceil(Math.log10(Math.max(...rates))), first + 1)
  const [top, bottom] = [44, 340]
  const [from, to] = [left + 110, width - right - 50]
  // Equal steps, so that the columns of the table below have room.
  const step = (to - from) / Math.max(columns.length - 1, 1)
  const x = (/** @type {number} */ value) => from + columns.indexOf(value) * step
  const y = (/** @type {number} */ rate) => bottom - ((Math.log10(rate) - first) / (last - first)) * (bottom - top)

  const grid = Array.from({ length: last - first + 1 }, (_, index) => {
    const rate = 10 ** (first + index)
    return (
      line(left, y(rate), width - right, y(rate), '#dddddd') + text(left - 8, y(rate) + 4, `${short(rate)}/s`, 'end')
    )
  })
  const heads = columns.map((value) => text(x(value), bottom + 20, value.toLocaleString('en-US'), 'middle'))
  const rows = colourful(series).map(({ name, points, colour }, index) => {
    const level = bottom + 64 + index * 18
    const path = points.map((point) => `${x(point.x).toFixed(1)},${y(point.rate).toFixed(1)}`).join(' ')
    const dots = points.map(
      (point) => `<circle cx="${x(point.x).toFixed(1)}" cy="${y(point.rate).toFixed(1)}" r="4" fill="${colour}"/>`,
    )
    const cells = points.map((point) => text(x(point.x), level, figure(point), 'middle', colour, 11))
    return [
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...dots,
      line(8, level - 4, 24, level - 4, colour, 3),
      text(30, level, name, 'start', colour, 11),
      ...cells,
    ].join('')
  })
  const height = bottom + 64 + series.length * 18 + 20
  return svg(height, title, foot, [...grid, ...heads, text((from + to) / 2, bottom + 40, xTitle, 'middle'), ...rows])
}

/** @param {Bars} chart */
export function bars({ title, foot, bars: rows }) {
  const widest = Math.max(...rows.map(({ rate }) => rate))
  const [from, room] = [170, width - right - 170 - 130]
  const drawn = colourful(rows).map(({ colour, ...row }, index) => {
    const level = 44 + index * 30
    const length = Math.max((row.rate / widest) * room, 1)
    return [
      text(from - 10, level + 15, row.name, 'end'),
      `<rect x="${from}" y="${level}" width="${length.toFixed(1)}" height="20" fill="${colour}"/>`,
      text(from + length + 8, level + 15, figure(row), 'start', colour),
    ].join('')
  })
  return svg(44 + rows.length * 30 + 30, title, foot, drawn)
}

/** @param {import('./durable-push.mjs').Comparison} comparison */
export function plot({ points, payloadBytes, device, machine }) {
  return lines({
    title: `Durable ${payloadBytes}-byte pushes a second, one JavaScript thread (in brackets: of the raw loop)`,
    foot: placeLine(machine, device, `Node ${machine.node}`),
    xTitle: 'pushes in flight / records per sync',
    series: [
      {
        name: 'raw write + fdatasync',
        isRaw: true,
        points: points.map(({ inFlight, rawPerSecond }) => ({ x: inFlight, rate: rawPerSecond, ofRaw: null })),
      },
      {
        name: 'durable pushes',
        isRaw: false,
        points: points.map(({ inFlight, queuePerSecond, ratio }) => ({
          x: inFlight,
          rate: queuePerSecond,
          ofRaw: ratio,
        })),
      },
    ],
  })
}

/**
 * @param {import('../scripts/device.mjs').Machine} machine
 * @param {import('../scripts/device.mjs').Device} device
 * @param {string} by The program that ran.
 */
export function placeLine(machine, device, by) {
  return `${machine.cpu}, ${machine.cores} cores; ${device.fileSystem} on ${device.device}; ${by}`
}

/**
 * @template {{ isRaw: boolean }} T
 * @param {T[]} items
 * @returns {(T & { colour: string })[]}
 */
function colourful(items) {
  let next = 0
  return items.map((item) => {
    const colour = item.isRaw ? rawColour : (colours[next++ % colours.length] ?? rawColour)
    return Object.assign({}, item, { colour })
  })
}

/** @param {{ rate: number, ofRaw: number | null }} point */
function figure({ rate, ofRaw }) {
  return ofRaw === null ? `${short(rate)}/s` : `${short(rate)}/s (${ofRaw.toPrecision(2)})`
}

/** @param {number} rate */
function short(rate) {
  if (rate >= 1e6) return `${Number((rate / 1e6).toPrecision(3))} M`
  if (rate >= 1e3) return `${Number((rate / 1e3).toPrecision(3))} k`
  return String(Number(rate.toPrecision(3)))
}

/** @param {number} height @param {string} title @param {string} note @param {string[]} content */
function svg(height, title, note, content) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(8, 22, title, 'start', '#000000', 14),
    ...content,
    text(width / 2, height - 6, note, 'middle', '#888888', 10),
    '</svg>',
    '',
  ].join('\n')
}

/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} colour */
function line(x1, y1, x2, y2, colour, thickness = 1) {
  const [a, b, c, d] = [x1, y1, x2, y2].map((value) => value.toFixed(1))
  return `<line x1="${a}" y1="${b}" x2="${c}" y2="${d}" stroke="${colour}" stroke-width="${thickness}"/>`
}

/** @param {number} x @param {number} y @param {string} content @param {'start' | 'middle' | 'end'} anchor */
function text(x, y, content, anchor, colour = '#333333', fontSize = 12) {
  const safe = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${colour}" font-size="${fontSize}">${safe}</text>`
}
