// Which disk a folder lies on, and which machine this is: a durable figure means nothing without both.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'

/**
 * @typedef {{ fileSystem: string, source: string, mountPoint: string, device: string, inMemory: boolean }} Device
 * @typedef {{ cpu: string, cores: number, memoryGiB: number, kernel: string, node: string }} Machine
 */

const inMemory = new Set(['tmpfs', 'ramfs', 'devtmpfs'])

/**
 * The mount that holds `path`, from /proc/self/mountinfo, and the block device under it, from /sys/block.
 * @param {string} path An existing file or folder.
 * @returns {Device}
 */
export function deviceOf(path) {
  const real = realpathSync(path)
  let best = { mountPoint: '', fileSystem: 'unknown', source: 'unknown', number: '' }
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [left = '', right = ''] = line.split(' - ')
    const [, , number = '', , rawPoint = ''] = left.split(' ')
    const [fileSystem = '', source = ''] = right.split(' ')
    const mountPoint = rawPoint.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8)))
    const holds = mountPoint === '/' || real === mountPoint || real.startsWith(`${mountPoint}/`)
    // Later lines lie on top of earlier ones with the same mount point.
    if (mountPoint !== '' && holds && mountPoint.length >= best.mountPoint.length) {
      best = { mountPoint, fileSystem, source, number }
    }
  }
  const { number, ...mount } = best
  return { ...mount, device: describe(number), inMemory: inMemory.has(mount.fileSystem) }
}

/** @param {string} number The device's major:minor. */
function describe(number) {
  const link = `/sys/dev/block/${number}`
  if (!existsSync(link)) return 'no block device'
  let folder = realpathSync(link)
  if (existsSync(join(folder, 'partition'))) folder = join(folder, '..')
  const read = (/** @type {string} */ file) => {
    try {
      return readFileSync(join(folder, file), 'utf8').trim()
    } catch {
      return ''
    }
  }
  const parts = [
    folder.split('/').at(-1) ?? '',
    read('device/model'),
    `write cache: ${read('queue/write_cache') || 'unknown'}`,
  ]
  return parts.filter((part) => part !== '').join(', ')
}

/** @returns {Machine} */
export function machine() {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim(),
    node: process.versions.node,
  }
}
