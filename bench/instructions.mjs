// Instructions of the hot paths, counted by callgrind, and held against the figures that were recorded. They do not
// depend on load; they do depend on the compiler, on the C library and on the processor that valgrind offers.
import { readFileSync } from 'node:fs'

/** A path may take this much more than was recorded. */
export const tolerance = 0.03
/** Two counts of one path may differ by this much: the log's files made ahead come when they come. */
export const repeatability = 0.01

/**
 * @typedef {{ rustc: string, libc: string, valgrind: string, cpu: string }} Toolchain
 * @typedef {{ toolchain: Toolchain, unit: string, paths: Record<string, number> }} Counts
 */

/**
 * The instructions in a file that callgrind wrote.
 * @param {string} text
 */
export function totalOf(text) {
  const total = Number(/^totals: (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
  if (!(total > 0)) throw new Error('callgrind counted nothing: is the function still there under its name?')
  return total
}

/**
 * Valgrind offers programs one of a few fixed processors, the best that the real one can stand in for.
 * @param {string} cpuinfo The text of /proc/cpuinfo.
 */
export function processorOf(cpuinfo) {
  const flags = new Set((/^flags\s*: (.*)$/m.exec(cpuinfo)?.[1] ?? '').split(' '))
  return ['avx2', 'avx', 'sse4_2', 'sse3'].find((flag) => flags.has(flag)) ?? process.arch
}

/** The C library of this process, which is the one of the programs it starts. */
export function libc() {
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport())
  return report.header.glibcVersionRuntime ?? 'unknown'
}

/** @param {string} file */
export function readCounts(file) {
  return /** @type {Counts} */ (JSON.parse(readFileSync(file, 'utf8')))
}

/**
 * What differs between two toolchains, as text; nothing when figures of one may be held against the other.
 * @param {Toolchain} recorded
 * @param {Toolchain} here
 */
export function difference(recorded, here) {
  const names = /** @type {(keyof Toolchain)[]} */ (Object.keys(here))
  return names
    .filter((name) => recorded[name] !== here[name])
    .map((name) => `${name} ${recorded[name]} recorded, ${here[name]} here`)
    .join('; ')
}

/**
 * One line for each path, and whether it may stay as it is.
 * @param {Record<string, number>} recorded
 * @param {Record<string, number>} counted
 * @returns {{ text: string, verdict: 'same' | 'better' | 'worse' | 'unknown' }[]}
 */
export function compare(recorded, counted) {
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(counted)])]
  return names.map((name) => {
    const [before, now] = [recorded[name], counted[name]]
    const figures = [before, now].map((value) => (value === undefined ? '-' : value.toFixed(1)).padStart(10)).join(' ')
    const line = (/** @type {string} */ word) => `${name.padEnd(18)}${figures}   ${word}`
    if (before === undefined) return { text: line('not recorded'), verdict: 'unknown' }
    if (now === undefined) return { text: line('recorded, but no such path'), verdict: 'unknown' }
    const change = now / before - 1
    const percent = `${change < 0 ? '' : '+'}${(change * 100).toFixed(2)} %`
    if (change > tolerance) return { text: line(`${percent} worse`), verdict: 'worse' }
    if (change < -tolerance) return { text: line(`${percent} better`), verdict: 'better' }
    return { text: line(percent), verdict: 'same' }
  })
}
