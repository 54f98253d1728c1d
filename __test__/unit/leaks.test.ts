import { describe, expect, it } from 'vitest'
import type { Queue, QueueWarning } from '../../src-ts/index.ts'
import { forgetOpened, openQueue, turns } from '../helpers/queues.ts'

const collect = (globalThis as { gc?: () => void }).gc

async function collected(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    await turns(2)
    collect?.()
    await turns(2)
  }
}

function processWarnings(): { codes: string[]; stop: () => void } {
  const codes: string[] = []
  const listener = (warning: Error & { code?: string }): void => {
    codes.push(warning.code ?? warning.name)
  }
  process.on('warning', listener)
  return { codes, stop: () => process.off('warning', listener) }
}

async function dropSome(queue: Queue<number>, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await queue.reserve()
}

describe('O-30: handles that are dropped', () => {
  it('has a collector to test with', () => {
    expect(collect).toBeTypeOf('function')
  })

  it('are returned, with one warning that names the leak', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    const warnings: QueueWarning[] = []
    queue.on('warning', (warning) => warnings.push(warning))
    const ofProcess = processWarnings()
    await queue.pushMany([1, 2, 3])
    await dropSome(queue, 3)
    expect(queue.readyLength).toBe(0)
    await collected()
    expect(queue.readyLength).toBe(3)
    expect(queue.tryReserve()?.deliveries).toBe(2)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({
      name: 'LeakedReservation',
      message: expect.stringContaining('dropped') as string,
    })
    expect(ofProcess.codes).toEqual(['MILLPOND_LEAK'])
    ofProcess.stop()
  })

  it('do not matter once they were settled', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    let warnings = 0
    queue.on('warning', () => warnings++)
    await queue.pushMany(Array.from({ length: 10_000 }, (_, i) => i))
    for (let done = 0; done < 10_000;) {
      const items = await queue.reserveMany(1_000)
      // Half of them live beyond their first turn.
      await Promise.all(items.filter((item) => item.id % 2 === 0).map((item) => item.ack()))
      await turns(1)
      await Promise.all(items.filter((item) => item.id % 2 === 1).map((item) => item.ack()))
      done += items.length
    }
    await collected()
    expect(queue.length).toBe(0)
    expect(queue.stats().nacked).toBe(0)
    expect(warnings).toBe(0)
  })

  it('touch nothing that came later', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    let warnings = 0
    queue.on('warning', () => warnings++)
    await queue.pushMany([1, 2])
    await dropSome(queue, 2)
    await turns(2)
    // Settled by id, and delivered anew.
    expect(await queue.ack(1)).toBe(true)
    expect(queue.nack(2)).toBe(true)
    const again = await queue.reserve()
    expect(again?.id).toBe(2)
    await queue.push(3)
    await collected()
    expect(queue.inFlight().map((entry) => entry.id)).toEqual([2])
    expect(queue.length).toBe(2)
    expect(warnings).toBe(0)
    expect(await again?.ack()).toBe(true)
  })

  it('stay in flight after detach', async () => {
    const queue = await openQueue<number>({ backend: 'memory' })
    await queue.pushMany([1, 2])
    ;(await queue.reserve())?.detach()
    await (async () => {
      const item = await queue.reserve()
      await turns(2)
      item?.detach()
    })()
    await collected()
    expect(queue.inFlight().map((entry) => entry.id)).toEqual([1, 2])
  })
})

describe('queues that were closed', () => {
  it('are collected', async () => {
    const kept: WeakRef<object>[] = []
    await (async () => {
      for (let i = 0; i < 10; i++) {
        const queue = await openQueue<number>({ backend: 'memory' })
        await queue.push(i)
        await queue.close()
        // Its engine holds the memory; only the addon could still lead to it.
        kept.push(new WeakRef(queue.recovery))
      }
    })()
    forgetOpened()
    await collected()
    expect(kept.filter((queue) => queue.deref() !== undefined)).toEqual([])
  })
})
