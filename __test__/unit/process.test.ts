import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openQueue } from '../helpers/queues.ts'
import { runScript } from '../helpers/script.ts'
import { tempDir } from '../helpers/tempdir.ts'

const isBuilt = existsSync(new URL('../../dist/index.js', import.meta.url))

const endings: Record<string, string> = {
  'opens and does nothing': '',
  'opens, pushes and awaits': 'await queue.push(1)',
  'waits with unref': 'queue.reserve({ unref: true }); queue.reserveMany(3, { unref: true, timeoutMs: 60_000 })',
  closes: 'await queue.close()',
  'holds a reservation': 'await queue.push(1); globalThis.item = await queue.reserve()',
}

describe.skipIf(!isBuilt)('O-26: a process', () => {
  it.each(Object.entries(endings))('that %s ends by itself', async (_, body) => {
    const path = join(tempDir(), 'queue')
    const ended = await runScript(`const queue = await Queue.open(process.argv[1]); ${body}; console.log('READY')`, [
      path,
    ])
    expect(ended.output.trim()).toBe('READY')
    expect(ended.code).toBe(0)
    expect(ended.ms).toBeLessThan(2_000)
  })

  it('that does not await a push ends when it is stored', async () => {
    const path = join(tempDir(), 'queue')
    const ended = await runScript('const queue = await Queue.open(process.argv[1]); queue.push("kept")', [path])
    expect(ended).toMatchObject({ code: 0, output: '' })
    const queue = await openQueue<string>({}, path)
    expect(queue.tryReserve()?.value).toBe('kept')
  })

  it('that waits in reserve stays', async () => {
    const path = join(tempDir(), 'queue')
    const ended = await runScript(
      'const queue = await Queue.open(process.argv[1]); await queue.reserve()',
      [path],
      1_500,
    )
    expect(ended.code).toBeNull()
  })

  it('that opens 20 queues and uses them ends by itself', async () => {
    const path = tempDir()
    const ended = await runScript(
      `const queues = await Promise.all(Array.from({ length: 20 }, (_, i) => Queue.open(process.argv[1] + '/' + i)))
      await Promise.all(queues.map((queue) => queue.push(1)))
      await Promise.all(queues.map(async (queue) => (await queue.reserve()).ack()))
      console.log('READY')`,
      [path],
    )
    expect(ended).toMatchObject({ code: 0, output: 'READY\n' })
    expect(ended.ms).toBeLessThan(2_000)
  })

  it('stores what pushSync and flushSync were given in an exit handler', async () => {
    const path = join(tempDir(), 'queue')
    const ended = await runScript(
      `const queue = await Queue.open(process.argv[1])
      process.on('exit', () => { queue.push('a'); queue.flushSync(); queue.pushSync('b') })`,
      [path],
    )
    expect(ended).toMatchObject({ code: 0, output: '' })
    const queue = await openQueue<string>({}, path)
    expect((await queue.reserveMany(5)).map((item) => item.value)).toEqual(['a', 'b'])
  })

  it('works in a Worker, also one that is terminated', async () => {
    const path = join(tempDir(), 'queue')
    const ended = await runScript(
      `import { Worker } from 'node:worker_threads'
      const source = \`
        const { Queue } = await import(\${JSON.stringify(${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)})})
        const { parentPort, workerData } = await import('node:worker_threads')
        const queue = await Queue.open(workerData)
        for (;;) parentPort.postMessage(await queue.push('x'))\`
      let last = 0
      for (let round = 0; round < 5; round++) {
        const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(source)), { workerData: process.argv[1] })
        await new Promise((resolve, reject) => { worker.on('error', reject); worker.on('message', (id) => { if (id < last) reject(new Error('an id came twice')); last = id; if (Math.random() < 0.05) resolve() }) })
        await worker.terminate()
      }
      const queue = await Queue.open(process.argv[1])
      if (queue.length < 5) throw new Error('too few')
      console.log(await queue.get(last) === null ? 'LOST' : 'KEPT')
      await queue.close()`,
      [path],
    )
    expect(ended).toMatchObject({ code: 0, output: 'KEPT\n' })
  })

  it('O-32: says what is missing when there is no addon', async () => {
    const script = 'try { await Queue.open("x") } catch (e) { console.log(e.code, e.path, e.message) }'
    const missing = await runScript(`process.env.MILLPOND_ADDON = '/nowhere/millpond.node'; ${script}`)
    expect(missing.output).toContain('MILLPOND_UNSUPPORTED /nowhere/millpond.node')
    expect(missing.output).toContain('npm run build')
    const file = join(tempDir(), 'broken.node')
    writeFileSync(file, 'not a library')
    const broken = await runScript(`process.env.MILLPOND_ADDON = ${JSON.stringify(file)}; ${script}`)
    expect(broken.output).toContain('MILLPOND_UNSUPPORTED')
    expect(broken.output).toMatch(/does not load: .*(ELF|invalid|too short|mach-o)/i)
  })
})
