import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runScript } from '../helpers/child.ts'
import { tempDir } from '../helpers/tempdir.ts'

it('a handle that is dropped after its ack failed is returned', async () => {
  const directory = tempDir()
  // The lease and the push sync first, so the ack's sync fails; after that every ack is refused at once.
  const inject = ['-e', 'trace=fdatasync', '-e', 'inject=fdatasync:error=EIO:when=3']
  const wrapper = ['strace', '-f', '-o', join(directory, 'strace'), ...inject]
  const script = 'native/scripts/dropped-after-failed-ack.mjs'
  const ended = await runScript(script, [join(directory, 'queue')], { wrapper, nodeArguments: ['--expose-gc'] })
  expect(JSON.parse(ended.stdout)).toEqual({
    seen: [
      ['MILLPOND_IO', 1, false, 0],
      1,
      ['MILLPOND_POISONED', 2, false, 0],
      1,
      ['MILLPOND_POISONED', 3, false, 0],
      1,
    ],
    warnings: ['LeakedReservation'],
  })
  expect(ended.code).toBe(0)
})
