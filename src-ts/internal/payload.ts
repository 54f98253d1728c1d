import { types } from 'node:util'
import type { Encode } from '../engine.ts'
import { MillpondError } from '../errors.ts'

/** The largest payload, as in the core. */
export const PAYLOAD_BYTES_MAX: number = 512 * 1024 * 1024
/** Each UTF-16 code unit takes at most three bytes of UTF-8. */
export const UTF8_BYTES_PER_UNIT = 3

/** A getter of all typed arrays, whatever an object or its class puts before it. */
function intrinsic(name: 'byteLength' | 'buffer'): (bytes: Uint8Array) => unknown {
  const prototype: object = Object.getPrototypeOf(Uint8Array.prototype) as object
  const getter = Reflect.getOwnPropertyDescriptor(prototype, name)?.get as (this: Uint8Array) => unknown
  return Function.prototype.call.bind(getter) as (bytes: Uint8Array) => unknown
}

const bufferOf = intrinsic('buffer')

/**
 * How many bytes a codec's result really has. Its own property `byteLength` may say something else: then the pushes that
 * are staged beside it would be cut in the wrong places.
 */
export const byteLengthOf: (payload: Uint8Array) => number = intrinsic('byteLength') as (payload: Uint8Array) => number

/** A codec's refusal: a TypeError or an error of ours is passed on, anything else is MILLPOND_ENCODE. */
function encodeError(error: unknown): unknown {
  if (error instanceof MillpondError || error instanceof TypeError) return error
  const reason = error instanceof Error ? error.message : 'the codec threw a value that is not an Error'
  return new MillpondError('MILLPOND_ENCODE', reason, { cause: error })
}

export function tooLarge(): MillpondError {
  return new MillpondError('MILLPOND_TOO_LARGE', `a payload has at most ${PAYLOAD_BYTES_MAX} bytes`)
}

/** Runs a codec and checks what it returns. The engine copies the result before anything else runs. */
export function encoded<In>(encode: Encode<In>, value: In): Uint8Array | string {
  let payload: Uint8Array | string
  try {
    payload = encode(value)
  } catch (error) {
    throw encodeError(error)
  }
  if (typeof payload === 'string') {
    if (payload.length > PAYLOAD_BYTES_MAX) throw tooLarge()
    return payload
  }
  if (!types.isUint8Array(payload)) throw new TypeError('a codec must return a Uint8Array or a string')
  const length = byteLengthOf(payload)
  if (length > PAYLOAD_BYTES_MAX) throw tooLarge()
  // Empty may also mean detached, or outside of a buffer that shrank; this throws a TypeError then.
  if (length === 0) Uint8Array.prototype.at.call(payload, 0)
  return payload
}

/** The addon must not read memory that another thread may be writing. */
export function unshared(bytes: Uint8Array): Uint8Array {
  // Not by slice(): that of a Buffer is a view of the same memory.
  return types.isSharedArrayBuffer(bufferOf(bytes)) ? new Uint8Array(bytes) : bytes
}

/** Like {@link encoded}, as bytes that the addon may read. */
export function encodedBytes<In>(encode: Encode<In>, value: In): Uint8Array {
  const payload = encoded(encode, value)
  if (typeof payload !== 'string') return unshared(payload)
  const bytes = Buffer.from(payload)
  if (bytes.byteLength > PAYLOAD_BYTES_MAX) throw tooLarge()
  return bytes
}

/** The payloads of all values in one buffer, with their lengths. */
export function concat<In>(values: readonly In[], lengths: Uint32Array, encode: (value: In) => Uint8Array): Uint8Array {
  let buffer = new Uint8Array(0)
  let used = 0
  for (let i = 0; i < lengths.length; i++) {
    const payload = encode(values[i] as In)
    const length = byteLengthOf(payload)
    if (used + length > buffer.byteLength) {
      // For payloads of about the same size the first one tells how much is needed.
      const grown = new Uint8Array(Math.max((used + length) * 2, i === 0 ? length * lengths.length : 0))
      grown.set(buffer.subarray(0, used))
      buffer = grown
    }
    buffer.set(payload, used)
    lengths[i] = length
    used += length
  }
  return buffer.subarray(0, used)
}
