// What the bench refuses, and the raw loop it compares with.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { deviceOf } from '../scripts/device.mjs'
import { plot } from './plot.mjs'
import { table } from './report.mjs'

const bench = fileURLToPath(new URL('../scripts/bench.mjs', import.meta.url))

/** @param {...string} args */
function runBench(...args) {
  return spawnSync(process.execPath, [bench, ...args], { encoding: 'utf8', timeout: 60_000 })
}

test('flags that make no sense give the usage and exit code 2', () => {
  for (const args of [['--fast'], ['--dir'], ['word'], ['--quick=yes']]) {
    const { status, stderr } = runBench(...args)
    assert.equal(status, 2, args.join(' '))
    assert.match(stderr, /Usage: npm run bench/)
  }
})

test('a folder in memory is refused', (context) => {
  if (!existsSync('/dev/shm') || !deviceOf('/dev/shm').inMemory) {
    context.skip('/dev/shm is no tmpfs here')
    return
  }
  const dir = mkdtempSync('/dev/shm/millpond-bench-')
  try {
    const { status, stderr } = runBench('--quick', '--dir', dir)
    assert.equal(status, 1)
    assert.match(stderr, /failed: .* is on tmpfs: nothing is durable there/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('a folder is found on its own mount', () => {
  const dir = mkdtempSync(join(tmpdir(), 'millpond-device-'))
  try {
    assert.ok(dir.startsWith(deviceOf(dir).mountPoint))
    assert.equal(deviceOf('/proc').fileSystem, 'proc')
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('table and plot show every point', () => {
  const point = {
    rawPerSecond: 8000,
    queuePerSecond: 6000,
    ratio: 0.75,
    rawP50Micros: 120,
    queueP50Micros: 150,
    pushesPerCommit: 1,
  }
  const comparison = {
    payloadBytes: 256,
    rounds: 1,
    seconds: 1,
    device: { fileSystem: 'ext4', source: '/dev/x', mountPoint: '/', device: 'x & <y>', inMemory: false },
    machine: { cpu: 'c', cores: 2, memoryGiB: 8, kernel: '6', node: '20' },
    points: [
      { ...point, inFlight: 1 },
      { ...point, inFlight: 4096, rawPerSecond: 6e6, queuePerSecond: 1.5e6, ratio: 0.25, queueP50Micros: 0 },
    ],
  }
  assert.match(table(comparison), /\n +1 +8,000 +6,000 +0\.75 .*\n +4,096 +6,000,000 +1,500,000 +0\.25 /)
  const svg = plot(comparison)
  assert.equal(svg.match(/<circle/g)?.length, 4)
  assert.ok(svg.includes('x &amp; &lt;y>') && !svg.includes('NaN'))
})
