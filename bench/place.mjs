// Where a durable figure may be taken.
import { statfsSync } from 'node:fs'
import { deviceOf } from '../scripts/device.mjs'
import { Failure } from '../scripts/failure.mjs'

const freeBytesMin = 8 * 2 ** 30

/** @param {string} dir An existing folder. */
export function checkPlace(dir) {
  const device = deviceOf(dir)
  if (device.inMemory) throw new Failure(`${dir} is on ${device.fileSystem}: nothing is durable there; use --dir`)
  const { bavail, bsize } = statfsSync(dir)
  if (bavail * bsize < freeBytesMin) throw new Failure(`${dir} has less than 8 GiB free; use --dir`)
}
