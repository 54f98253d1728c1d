import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runScript } from '../helpers/child.ts'
import { tempDir } from '../helpers/tempdir.ts'

it('a Worker that ends before it hears of its open() leaves no lock', async () => {
  const path = join(tempDir(), 'queue')
  const ended = await runScript('native/scripts/unheard-open.mjs', [path, '5'])
  expect(ended.stderr).toBe('')
  expect(JSON.parse(ended.stdout)).toEqual([1, 1, 1, 1, 1])
  expect(ended.code).toBe(0)
})
