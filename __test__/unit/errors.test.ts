import { describe, expect, it } from 'vitest'
import { DecodeError, errorTable, isMillpondError, MillpondError, Queue, type ErrorCode } from '../../src-ts/index.ts'
import { loadNative } from '../../src-ts/internal/native.ts'
import { openQueue, rejection, turns } from '../helpers/queues.ts'
import { tempDir } from '../helpers/tempdir.ts'

const codes = Object.keys(errorTable) as ErrorCode[]

describe('the error table', () => {
  it('is the core’s', () => {
    const native = loadNative().errorCodes()
    expect(Object.fromEntries(native.map(({ code, ...rest }) => [code, rest]))).toEqual(errorTable)
    expect(loadNative().version()).toMatch(/^\d+\.\d+\.\d+$/)
  })

  it.each(codes)('%s makes an error', (code) => {
    const error = new MillpondError(code, 'what happened', {
      id: 7,
      path: '/x',
      errno: 28,
      operation: 'pwrite',
      cause: 1,
    })
    expect(error).toBeInstanceOf(Error)
    expect(error).toBeInstanceOf(MillpondError)
    expect(error.name).toBe('MillpondError')
    expect(error).toMatchObject({ code, retryable: errorTable[code].retryable, outcome: 'not-done' })
    expect(error).toMatchObject({ id: 7, path: '/x', errno: 28, operation: 'pwrite', cause: 1 })
    expect(isMillpondError(error)).toBe(true)
    expect(isMillpondError(error, code)).toBe(true)
    expect(codes.filter((other) => isMillpondError(error, other))).toEqual([code])
    expect(error instanceof DecodeError).toBe(code === 'MILLPOND_DECODE')
    expect('id' in new MillpondError(code, '')).toBe(false)
    expect('cause' in new MillpondError(code, '')).toBe(false)
  })

  it('recognises errors of another copy, and nothing else', () => {
    const foreign = Object.assign(new Error('x'), { code: 'MILLPOND_FULL' })
    expect(foreign instanceof MillpondError).toBe(false)
    expect(isMillpondError(foreign)).toBe(false)
    Object.defineProperty(foreign, Symbol.for('millpond.MillpondError'), { value: true })
    expect(foreign instanceof MillpondError).toBe(true)
    expect(isMillpondError(foreign, 'MILLPOND_FULL')).toBe(true)
    for (const other of [null, undefined, 1, 'MILLPOND_FULL', {}, new Error('x')])
      expect(isMillpondError(other)).toBe(false)
    class Special extends MillpondError {}
    expect(new MillpondError('MILLPOND_FULL', '') instanceof Special).toBe(false)
    expect(new Special('MILLPOND_FULL', '') instanceof Special).toBe(true)
    expect(new Special('MILLPOND_FULL', '') instanceof MillpondError).toBe(true)
  })
})

describe('stacks', () => {
  it('name the caller of what failed at once', async () => {
    const queue = await openQueue<unknown>({ backend: 'memory' })
    async function theCaller(): Promise<void> {
      await queue.push(1n)
    }
    expect(((await rejection(theCaller())) as Error).stack).toContain('theCaller')
  })

  it('name the caller of what failed later', async () => {
    const queue = await openQueue<number>({ backend: 'memory', capacity: 1 })
    await queue.push(1)
    async function theCaller(): Promise<void> {
      await queue.push(2)
    }
    const failed = rejection(theCaller())
    await turns(2)
    await queue.close()
    const error = (await failed) as MillpondError
    expect(error.code).toBe('MILLPOND_CLOSED')
    expect(error.stack).toContain('theCaller')
    expect(error.cause).toMatchObject({ code: 'MILLPOND_CLOSED' })
    const path = tempDir()
    const open = await openQueue({}, path)
    async function theOpener(): Promise<void> {
      await Queue.open(path)
    }
    expect(((await rejection(theOpener())) as Error).stack).toContain('theOpener')
    await open.close()
  })
})
