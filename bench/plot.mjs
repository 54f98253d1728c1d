// A comparison as an SVG: both rates over the number in flight, both axes logarithmic.

const size = { width: 720, height: 420, left: 90, right: 30, top: 60, bottom: 60, inset: 40 }
const series = /** @type {const} */ ([
  { name: 'raw write + fdatasync', key: 'rawPerSecond', colour: '#8a8a8a', below: false },
  { name: 'durable pushes', key: 'queuePerSecond', colour: '#0b6e99', below: true },
])

/** @param {import('./durable-push.mjs').Comparison} comparison */
export function plot({ points, payloadBytes, device, machine }) {
  const rates = points.flatMap((point) => [point.rawPerSecond, point.queuePerSecond])
  const decades = { first: Math.floor(Math.log10(Math.min(...rates))), last: Math.ceil(Math.log10(Math.max(...rates))) }
  const widest = Math.log2(Math.max(...points.map((point) => point.inFlight)))
  const x = (/** @type {number} */ inFlight) =>
    size.left + size.inset + (Math.log2(inFlight) / widest) * (size.width - size.left - size.right - 2 * size.inset)
  const y = (/** @type {number} */ rate) =>
    size.height -
    size.bottom -
    ((Math.log10(rate) - decades.first) / (decades.last - decades.first)) * (size.height - size.top - size.bottom)

  const grid = Array.from({ length: decades.last - decades.first + 1 }, (_, index) => {
    const rate = 10 ** (decades.first + index)
    return (
      line(size.left, y(rate), size.width - size.right, y(rate), '#dddddd') +
      text(size.left - 8, y(rate) + 4, short(rate), 'end')
    )
  })
  const ticks = points.map((point) =>
    text(x(point.inFlight), size.height - size.bottom + 20, point.inFlight.toLocaleString('en-US'), 'middle'),
  )
  const curves = series.map(({ name, key, colour, below }, index) => {
    const path = points.map((point) => `${x(point.inFlight).toFixed(1)},${y(point[key]).toFixed(1)}`).join(' ')
    const dots = points.map((point) => {
      const [cx, cy] = [x(point.inFlight), y(point[key])]
      return (
        `<circle cx="${cx.toFixed(1)}" cy="${cy.toFixed(1)}" r="4" fill="${colour}"/>` +
        text(cx, cy + (below ? 20 : -10), short(point[key]), 'middle', colour)
      )
    })
    const legend =
      line(size.left + index * 200, 40, size.left + 24 + index * 200, 40, colour, 3) +
      text(size.left + 30 + index * 200, 44, name, 'start')
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}${legend}`
  })
  const title = `Durable ${payloadBytes}-byte pushes a second, one JavaScript thread`
  const foot = `${machine.cpu}, ${machine.cores} cores; ${device.fileSystem} on ${device.device}; Node ${machine.node}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${size.width}" height="${size.height}" fill="#ffffff"/>`,
    text(size.left, 22, title, 'start', '#000000', 15),
    ...grid,
    ...ticks,
    ...curves,
    text(size.width / 2, size.height - 22, 'pushes in flight / records per sync', 'middle'),
    text(size.width / 2, size.height - 6, foot, 'middle', '#888888', 10),
    '</svg>',
    '',
  ].join('\n')
}

/** @param {number} rate */
function short(rate) {
  if (rate >= 1e6) return `${Number((rate / 1e6).toPrecision(3))} M`
  if (rate >= 1e3) return `${Number((rate / 1e3).toPrecision(3))} k`
  return String(Math.round(rate))
}

/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} colour */
function line(x1, y1, x2, y2, colour, width = 1) {
  const [a, b, c, d] = [x1, y1, x2, y2].map((value) => value.toFixed(1))
  return `<line x1="${a}" y1="${b}" x2="${c}" y2="${d}" stroke="${colour}" stroke-width="${width}"/>`
}

/** @param {number} x @param {number} y @param {string} content @param {'start' | 'middle' | 'end'} anchor */
function text(x, y, content, anchor, colour = '#333333', fontSize = 12) {
  const safe = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${colour}" font-size="${fontSize}">${safe}</text>`
}
