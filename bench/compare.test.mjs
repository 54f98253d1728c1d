// How rounds become medians, and medians bars.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barsOf, medians, plotOf, report } from './compare.mjs'

/** @param {string} store @param {string} who @param {number} producers @param {number[]} rates */
const figures = (store, who, producers, rates) => rates.map((perSecond) => ({ store, who, producers, perSecond }))

const all = medians([
  ...figures('disk', 'raw', 64, [500, 500, 500]),
  ...figures('redb', 'ours', 64, [90, 1000, 100]),
  ...figures('redb', 'theirs', 64, [100, 100, 99]),
  ...figures('redb', 'raw', 64, [150, 150, 150]),
  ...figures('log', 'ours', 64, [500, 499, 501]),
  ...figures('events', 'group', 16, [29, 29, 29]),
  ...figures('events', 'theirs', 16, [10, 10, 10]),
])

test('a median is the middle of the rounds', () => {
  const median = all.find(({ store, who }) => store === 'redb' && who === 'ours')
  assert.equal(median?.perSecond, 100)
  assert.deepEqual(median.rounds, [90, 1000, 100])
})

test('a bar is cleared, missed, or not measured, and never taken for cleared', () => {
  const verdicts = Object.fromEntries(barsOf(all).map(({ name, verdict }) => [name, verdict]))
  assert.deepEqual(verdicts, {
    'mem, none, 1: of theirs': 'not measured',
    'mem, none, 4: of theirs': 'not measured',
    'mem, none, 16: of theirs': 'not measured',
    'redb, group, 16: of theirs': 'not measured',
    'redb, group, 64: of theirs': 'pass',
    'redb, group, 16: of raw redb': 'not measured',
    'redb, group, 64: of raw redb': 'MISS',
    'log, group, 64: of their best group': 'pass',
    'event queue, RocksDB, 16: of theirs': 'MISS',
  })
})

test('report and plot show every figure', () => {
  assert.match(report(all, barsOf(all)), /MISS +redb, group, 64: of raw redb +0\.67 +at least 0\.9/)
  const svg = plotOf({
    medians: all,
    rustc: 'rustc 1.95.0',
    device: { fileSystem: 'ext4', source: '/dev/x', mountPoint: '/', device: 'x', inMemory: false },
    machine: { cpu: 'c', cores: 2, memoryGiB: 8, kernel: '6', node: '20' },
  })
  assert.equal(svg.match(/<rect/g)?.length, 1 + all.length)
  assert.ok(svg.includes('500/s (1.0)') && !svg.includes('NaN'))
})
