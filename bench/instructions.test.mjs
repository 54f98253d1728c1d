// When a count of instructions is compared, and what is said of it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { compare, difference, processorOf, readCounts, totalOf } from './instructions.mjs'

test('more than the tolerance is worse, less is said, and neither is silent about a path that is not there', () => {
  const lines = compare(
    { same: 100, worse: 100, better: 100, gone: 100 },
    { same: 102.9, worse: 103.1, better: 96.9, fresh: 100 },
  )
  assert.deepEqual(
    lines.map(({ verdict }) => verdict),
    ['same', 'worse', 'better', 'unknown', 'unknown'],
  )
  assert.match(lines[1]?.text ?? '', /worse +100\.0 +103\.1 +\+3\.10 % worse/)
})

test('another toolchain is named', () => {
  const here = { rustc: 'rustc 1.95.0', libc: '2.36', valgrind: 'valgrind-3.19.0', cpu: 'avx2' }
  assert.equal(difference(here, { ...here }), '')
  assert.equal(
    difference({ ...here, cpu: 'avx', libc: '2.41' }, here),
    'libc 2.41 recorded, 2.36 here; cpu avx recorded, avx2 here',
  )
})

test('the total is read, and counting nothing is an error', () => {
  assert.equal(totalOf('events: Ir\nsummary: 12\n\ntotals: 12\n'), 12)
  for (const text of ['', 'totals: 0\n', 'totals: x\n']) assert.throws(() => totalOf(text), /counted nothing/)
})

test('valgrind offers the best of its processors', () => {
  assert.equal(processorOf('model name : x\nflags\t\t: fpu sse4_2 avx avx2 avx512f\n'), 'avx2')
  assert.equal(processorOf('flags\t\t: fpu sse4_2\n'), 'sse4_2')
})

test('what is recorded says with what', () => {
  const { toolchain, paths } = readCounts(fileURLToPath(new URL('results/instructions.json', import.meta.url)))
  for (const part of Object.values(toolchain)) assert.notEqual(part, '')
  assert.ok(Object.keys(paths).length > 0)
  for (const [name, count] of Object.entries(paths)) assert.ok(count > 0, name)
})
