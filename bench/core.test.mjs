// What becomes of the files that criterion writes.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { groupsOf, plots, table } from './core.mjs'

/** @param {string} home @param {string} group @param {string} series @param {number} point @param {number} records @param {number} ns */
function write(home, group, series, point, records, ns) {
  const folder = join(home, group, series.replaceAll(' ', '_'), String(point), 'new')
  mkdirSync(folder, { recursive: true })
  const throughput = { Elements: records }
  const benchmark = { group_id: group, function_id: series, value_str: String(point), throughput }
  writeFileSync(join(folder, 'benchmark.json'), JSON.stringify(benchmark))
  const mean = { point_estimate: ns, confidence_interval: { lower_bound: ns / 2, upper_bound: ns * 2 } }
  writeFileSync(join(folder, 'estimates.json'), JSON.stringify({ mean }))
}

test('rates come with their share of the raw loop of the same point', () => {
  const home = mkdtempSync(join(tmpdir(), 'millpond-core-'))
  try {
    write(home, 'producers', 'log', 16, 1, 20_000)
    write(home, 'producers', 'raw write + fdatasync', 16, 16, 160_000)
    write(home, 'producers', 'log', 4, 1, 40_000)
    write(home, 'store push', 'mem', 1, 1, 1000)
    const groups = groupsOf(home)
    const producers = groups.find(({ name }) => name === 'producers')?.points ?? []
    assert.deepEqual(
      producers.map(({ series, point, perSecond, ofRaw }) => [series, point, perSecond, ofRaw]),
      [
        ['log', 4, 25_000, null],
        ['log', 16, 50_000, 0.5],
        ['raw write + fdatasync', 16, 100_000, null],
      ],
    )
    assert.deepEqual([producers[1]?.perSecondLow, producers[1]?.perSecondHigh], [25_000, 100_000])

    const result = {
      payloadBytes: 256,
      length: /** @type {const} */ ('quick'),
      loadBefore: 0,
      rustc: 'rustc',
      device: { fileSystem: 'ext4', source: '/dev/x', mountPoint: '/', device: 'x', inMemory: false },
      machine: { cpu: 'c', cores: 2, memoryGiB: 8, kernel: '6', node: '20' },
      groups,
    }
    assert.match(table(result), /log +16 +50,000 {2}0\.50 of raw/)
    const drawn = new Map(plots(result))
    assert.deepEqual([...drawn.keys()].toSorted(), ['core-producers.svg', 'core-store-push.svg'])
    assert.equal(drawn.get('core-producers.svg')?.match(/<circle/g)?.length, 3)
    assert.ok(drawn.get('core-producers.svg')?.includes('50 k/s (0.50)'))
    assert.ok(drawn.get('core-store-push.svg')?.includes('1 M/s'))
    for (const svg of drawn.values()) assert.ok(!svg.includes('NaN') && !svg.includes('undefined'))
  } finally {
    rmSync(home, { recursive: true })
  }
})
