import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runScript } from '../helpers/child.ts'
import { drain, openQueue } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

const ROUNDS = 4

/** Where and with how many queues. */
const places: [string, string, string][] = [
  ['on the main thread', '1', 'main'],
  ['in a Worker', '1', 'worker'],
  ['with 20 queues', '20', 'main'],
]

describe.each(places)('O-26: the end of a process %s', (_, count, where) => {
  it.each([
    ['a', 'that opens and does nothing'],
    ['b', 'that pushes and awaits'],
    ['c', 'that pushes without awaiting'],
    ['e', 'that waits for an entry without holding the process'],
    ['f', 'that opens and closes'],
  ])('(%s) %s comes by itself', async (kind) => {
    for (let round = 0; round < ROUNDS; round++) {
      const path = join(tempDir(), 'queue')
      const ended = await runScript('cases/scripts/exit.mjs', [kind, path, count, where], { limitMs: 15_000 })
      expect({ ...ended, lingeredMs: 0 }).toEqual({
        code: 0,
        signal: null,
        stdout: 'done\n',
        stderr: '',
        lingeredMs: 0,
      })
      // 500 ms on a quiet machine; a process that hangs is killed after 15 s and fails above.
      expect(ended.lingeredMs).toBeLessThan(10_000)
      const queue = await openQueue<string>({}, `${path}-0`)
      expect(drain(queue).map((item) => item.value)).toEqual(kind === 'b' || kind === 'c' ? [kind] : [])
    }
  })

  it('(d) does not come while reserve() waits', async () => {
    const path = join(tempDir(), 'queue')
    const ended = await runScript('cases/scripts/exit.mjs', ['d', path, count, where], { limitMs: 2_000 })
    expect(ended).toMatchObject({ signal: 'SIGKILL', stdout: 'done\n', stderr: '' })
  })
})
