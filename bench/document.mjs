// The figures that documents quote: each block between `<!-- figures: NAME -->` and `<!-- figures: end -->` is made from
// the result of that name.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)

/** The documents with such blocks, from the checkout's folder. */
export const documents = ['README.md', 'docs/benchmarks.md']

/** @type {Record<string, (result: any) => string[]>} */
const blocks = {
  'durable-push': durablePush,
  core,
  compare,
  instructions,
}

/** Writes the blocks of all documents anew. */
export function writeDocuments() {
  for (const document of documents) {
    const path = fileURLToPath(new URL(document, root))
    writeFileSync(path, withFigures(readFileSync(path, 'utf8')))
  }
}

/**
 * A document with the figures of the results that are there.
 * @param {string} text
 */
export function withFigures(text) {
  return text.replace(/(<!-- figures: (\S+) -->\n)[\s\S]*?(<!-- figures: end -->)/g, (_, begin, name, end) => {
    const file = fileURLToPath(new URL(`bench/results/${name}.json`, root))
    const block = blocks[name]
    if (block === undefined) throw new Error(`no result of the name ${name}`)
    if (!existsSync(file)) return `${begin}No result is committed yet.\n${end}`
    return `${begin}${block(JSON.parse(readFileSync(file, 'utf8'))).join('\n')}\n${end}`
  })
}

/** @param {import('./durable-push.mjs').Comparison} result */
function durablePush({ points, device, machine }) {
  return [
    `${placeOf(machine, device)}, Node ${machine.node}:`,
    '',
    '| pushes in flight | durable pushes/s | raw records/s | ratio |',
    '| ---: | ---: | ---: | ---: |',
    ...points.map((point) =>
      row([whole(point.inFlight), whole(point.queuePerSecond), whole(point.rawPerSecond), point.ratio.toFixed(2)]),
    ),
  ]
}

/** @param {import('./core.mjs').Result} result */
function core({ groups, length, loadBefore, device, machine, rustc }) {
  return [
    `${placeOf(machine, device)}, ${rustc}; ${length} run. ${loadOf(loadBefore, machine)}`,
    ...groups.flatMap(({ name, points }) => {
      const columns = [...new Set(points.map(({ point }) => point))].toSorted((a, b) => a - b)
      const series = [...new Set(points.map((point) => point.series))]
      const isCodec = name.startsWith('codec')
      const heads = isCodec ? ['bytes', 'values/s'] : columns.map(whole)
      const rows = series.map((one) => {
        const own = points.filter((point) => point.series === one)
        const cells = own.map(({ point, perSecond, ofRaw }) => {
          const rate = ofRaw === null ? whole(perSecond) : `${whole(perSecond)} (${ofRaw.toPrecision(2)})`
          return { point, rate }
        })
        if (isCodec) return row([one, ...cells.flatMap(({ point, rate }) => [whole(point), rate])])
        return row([one, ...columns.map((column) => cells.find(({ point }) => point === column)?.rate ?? '')])
      })
      const rule = `| --- |${' ---: |'.repeat(heads.length)}`
      return [
        '',
        `![${name}](../bench/results/core-${name.replaceAll(' ', '-')}.svg)`,
        '',
        row([name, ...heads]),
        rule,
        ...rows,
      ]
    }),
  ]
}

/** @param {{ bars: import('./compare.mjs').Bar[], medians: import('./compare.mjs').Median[], rounds: number, seconds: number, loadBefore: number, rustc: string, device: import('../scripts/device.mjs').Device, machine: import('../scripts/device.mjs').Machine }} result */
function compare({ bars, medians, rounds, seconds, loadBefore, rustc, device, machine }) {
  return [
    `${placeOf(machine, device)}, ${rustc}; ${rounds} rounds of ${seconds} s a figure. ${loadOf(loadBefore, machine)}`,
    '',
    '| bar | measured | at least | |',
    '| --- | ---: | ---: | --- |',
    ...bars.map(({ name, ratio, least, verdict }) =>
      row([name, ratio === null ? '' : ratio.toFixed(2), String(least), verdict]),
    ),
    '',
    '| store | who | producers | records/s | of the rounds |',
    '| --- | --- | ---: | ---: | ---: |',
    ...medians.map(({ store, who, producers, perSecond, rounds: all }) =>
      row([store, who, whole(producers), whole(perSecond), `${whole(Math.min(...all))} to ${whole(Math.max(...all))}`]),
    ),
  ]
}

/** @param {import('./instructions.mjs').Counts} result */
function instructions({ toolchain, paths }) {
  return [
    `${toolchain.rustc}, glibc ${toolchain.libc}, ${toolchain.valgrind}, processor ${toolchain.cpu}.`,
    '',
    '| path | instructions per operation |',
    '| --- | ---: |',
    ...Object.entries(paths).map(([name, count]) => row([name, whole(count)])),
  ]
}

/**
 * @param {import('../scripts/device.mjs').Machine} machine
 * @param {import('../scripts/device.mjs').Device} device
 */
function placeOf(machine, device) {
  return `${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, ${device.fileSystem} on ${device.device}`
}

/** @param {number} load @param {import('../scripts/device.mjs').Machine} machine */
function loadOf(load, { cores }) {
  const average = `Load average before: ${load.toFixed(1)}`
  if (load <= cores / 2) return `${average}.`
  return `${average} on ${cores} cores, so other work ran beside: figures of a quiet machine are higher and steadier.`
}

/** @param {string[]} cells */
function row(cells) {
  return `| ${cells.join(' | ')} |`
}

/** @param {number} value */
function whole(value) {
  return Math.round(value).toLocaleString('en-US')
}
