// A comparison as text.

/** @param {{ device: import('../scripts/device.mjs').Device, machine: import('../scripts/device.mjs').Machine }} where */
export function place({ device, machine }) {
  return [
    `machine      ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, Node ${machine.node}`,
    `file system  ${device.fileSystem} on ${device.source}, mounted at ${device.mountPoint}`,
    `device       ${device.device}`,
  ].join('\n')
}

/** @param {import('./durable-push.mjs').Comparison} comparison */
export function table({ payloadBytes, points }) {
  const lines = points.map((point) =>
    [
      point.inFlight.toLocaleString('en-US').padStart(9),
      rate(point.rawPerSecond),
      rate(point.queuePerSecond),
      point.ratio.toFixed(2).padStart(7),
      point.pushesPerCommit.toFixed(1).padStart(13),
      micros(point.rawP50Micros),
      micros(point.queueP50Micros),
    ].join('  '),
  )
  return [
    `${payloadBytes}-byte entries, durability group, one JavaScript thread; raw: as many records per sync`,
    '',
    'in flight    raw rec/s  durable/s     ratio  pushes/commit  raw p50 us  push p50 us',
    ...lines,
  ].join('\n')
}

/** @param {number} value */
function rate(value) {
  return Math.round(value).toLocaleString('en-US').padStart(12)
}

/** @param {number} value */
function micros(value) {
  return (value > 0 ? value.toFixed(0) : '-').padStart(10)
}
